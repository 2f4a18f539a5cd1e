"""LIEDER: does a model know when a discourse entity may be referred to? (Zhu & Frank 2024)."""
