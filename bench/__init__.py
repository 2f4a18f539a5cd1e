"""What this project claims to be fast, measured beside what it is compared with."""
