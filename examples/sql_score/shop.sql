CREATE TABLE customer (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  city TEXT
);
CREATE TABLE purchase (
  id INTEGER PRIMARY KEY,
  customer INTEGER NOT NULL REFERENCES customer(id),
  item TEXT NOT NULL,
  price REAL NOT NULL,
  day TEXT NOT NULL
);
INSERT INTO customer VALUES
  (1, 'Anna', 'Bern'), (2, 'Ben', 'Basel'), (3, 'Clara', 'Bern'), (4, 'David', NULL);
INSERT INTO purchase VALUES
  (1, 1, 'lamp', 40.0, '2025-01-03'), (2, 1, 'desk', 210.0, '2025-01-10'),
  (3, 2, 'lamp', 40.0, '2025-02-01'), (4, 3, 'chair', 85.5, '2025-02-14');
