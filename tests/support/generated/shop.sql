-- Names in camel case; text keys; written for these tests.
CREATE TABLE Supplier (supplierCode TEXT PRIMARY KEY, supplierName TEXT NOT NULL, country TEXT, foundedYear INTEGER);
CREATE TABLE Product (
  productId INTEGER PRIMARY KEY, productName TEXT NOT NULL, category TEXT NOT NULL, unitPrice REAL NOT NULL,
  stockQuantity INTEGER NOT NULL, weight REAL, supplierCode TEXT REFERENCES Supplier(supplierCode)
);
CREATE TABLE Customer (
  customerId INTEGER PRIMARY KEY, firstName TEXT NOT NULL, lastName TEXT NOT NULL, city TEXT NOT NULL, creditLimit INTEGER
);
CREATE TABLE SalesOrder (
  orderId INTEGER PRIMARY KEY, customerId INTEGER NOT NULL REFERENCES Customer(customerId),
  orderDate TEXT NOT NULL, shippedDate TEXT, totalAmount REAL NOT NULL, paymentMethod TEXT NOT NULL
);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 12)
INSERT INTO Supplier SELECT 'S' || i, 'Supplier ' || char(64 + i),
  CASE i % 4 WHEN 0 THEN 'Norway' WHEN 1 THEN 'Spain' WHEN 2 THEN 'Japan' ELSE 'Chile' END, 1950 + i * 5 FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60)
INSERT INTO Product SELECT i, 'Item ' || char(65 + i % 26) || char(65 + (i * 7) % 26) || CASE WHEN i % 3 THEN 'x' ELSE ' large' END,
  CASE i % 5 WHEN 0 THEN 'Lamps' WHEN 1 THEN 'Chairs' WHEN 2 THEN 'Tables' WHEN 3 THEN 'Rugs' ELSE 'Lamps' END,
  round(5 + (i * 37 % 101) * 1.5, 2), (i * 53) % 97, 1 + (i * 29) % 41, 'S' || (1 + i * i % 11) FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40)
INSERT INTO Customer SELECT i,
  CASE i % 7 WHEN 0 THEN 'Ana' WHEN 1 THEN 'Boris' WHEN 2 THEN 'Clara' WHEN 3 THEN 'Dmitri' WHEN 4 THEN 'Elena' WHEN 5 THEN 'Felix' ELSE 'Greta' END,
  CASE i % 9 WHEN 0 THEN 'Huber' WHEN 1 THEN 'Ito' WHEN 2 THEN 'Jansen' WHEN 3 THEN 'Keller' WHEN 4 THEN 'Lopez' WHEN 5 THEN 'Moreau' WHEN 6 THEN 'Novak' WHEN 7 THEN 'Okafor' ELSE 'Petrov' END,
  CASE i % 6 WHEN 0 THEN 'Oslo' WHEN 1 THEN 'Madrid' WHEN 2 THEN 'Kyoto' WHEN 3 THEN 'Lima' WHEN 4 THEN 'Oslo' ELSE 'Turin' END,
  500 + (i * 173) % 2000 FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 150)
INSERT INTO SalesOrder SELECT i, 1 + (i * i + i) % 37, date('2021-01-03', '+' || (i * 5) || ' days'),
  date('2021-01-03', '+' || (i * 5 + 1 + i * 7 % 23) || ' days'), round(10 + (i * 61) % 499 + i % 4 * 0.25, 2),
  CASE i % 4 WHEN 0 THEN 'Card' WHEN 1 THEN 'Cash' WHEN 2 THEN 'Card' ELSE 'Transfer' END FROM n;
