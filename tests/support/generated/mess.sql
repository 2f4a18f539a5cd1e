-- No keys, reserved words, spaces, Chinese names, empty tables, mixed types.
CREATE TABLE "order" ("group" TEXT, "select" REAL, "order date" TEXT, "unit price" REAL, "city" TEXT, "name" TEXT, quantity INTEGER);
CREATE TABLE "客户" ("姓名" TEXT, "城市" TEXT, "金额" REAL);
CREATE TABLE empty_one (name TEXT, price REAL);
CREATE TABLE x1 (a, b, c);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 70)
INSERT INTO "order" SELECT CASE i % 4 WHEN 0 THEN 'Alpha' WHEN 1 THEN 'Beta' WHEN 2 THEN 'Gamma' ELSE 'Alpha' END, i * 1.5,
  date('2022-05-01', '+' || (i * 3) || ' days'), 3 + i * 47 % 89, CASE i % 5 WHEN 0 THEN 'Rome' WHEN 1 THEN 'Bern' WHEN 2 THEN 'Riga' WHEN 3 THEN 'Bern' ELSE 'Cork' END,
  'Order ' || char(65 + i % 26) || char(65 + i / 26), i * 31 % 53 FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20)
INSERT INTO "客户" SELECT '客' || i, CASE i % 3 WHEN 0 THEN '北京' ELSE '上海' END, i * 10.5 FROM n;
INSERT INTO x1 VALUES (1, 'a', NULL), ('2', x'00', 3.5), (NULL, '', ''), (4, 'd', 'e'), (5, 'f', 'g');
