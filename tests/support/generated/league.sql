-- Names in snake case with the table's name before them; plural tables.
CREATE TABLE teams (team_id INTEGER PRIMARY KEY, team_name TEXT NOT NULL, home_city TEXT NOT NULL, founding_year INTEGER, annual_budget INTEGER NOT NULL);
CREATE TABLE players (player_id INTEGER PRIMARY KEY, player_name TEXT NOT NULL, position TEXT, nationality TEXT NOT NULL,
  height_cm INTEGER NOT NULL, weekly_salary INTEGER NOT NULL, team_id INTEGER NOT NULL REFERENCES teams(team_id));
CREATE TABLE transfers (transfer_id INTEGER PRIMARY KEY, player_id INTEGER NOT NULL REFERENCES players(player_id),
  transfer_date TEXT NOT NULL, transfer_fee INTEGER NOT NULL, transfer_type TEXT NOT NULL);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10)
INSERT INTO teams SELECT i, CASE i WHEN 1 THEN 'Falcons' WHEN 2 THEN 'Otters' WHEN 3 THEN 'Herons' WHEN 4 THEN 'Badgers' WHEN 5 THEN 'Lynxes' WHEN 6 THEN 'Ravens' WHEN 7 THEN 'Martens' WHEN 8 THEN 'Ibexes' WHEN 9 THEN 'Kites' ELSE 'Bisons' END,
  CASE i % 4 WHEN 0 THEN 'Graz' WHEN 1 THEN 'Lyon' WHEN 2 THEN 'Porto' ELSE 'Graz' END, 1890 + i * 9, 100000 + i * i * 7000 FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 80)
INSERT INTO players SELECT i, char(65 + i % 26) || '. ' || CASE i % 6 WHEN 0 THEN 'Silva' WHEN 1 THEN 'Novak' WHEN 2 THEN 'Dubois' WHEN 3 THEN 'Hansen' WHEN 4 THEN 'Rossi' ELSE 'Kovac' END,
  CASE i % 4 WHEN 0 THEN 'Goalkeeper' WHEN 1 THEN 'Defender' WHEN 2 THEN 'Striker' ELSE 'Defender' END,
  CASE i % 5 WHEN 0 THEN 'Brazil' WHEN 1 THEN 'Croatia' WHEN 2 THEN 'France' WHEN 3 THEN 'Norway' ELSE 'Italy' END,
  165 + i * 17 % 36, 500 + i * 331 % 9001, 1 + i * 7 % 9 FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50)
INSERT INTO transfers SELECT i, 1 + i * i % 73, date('2018-07-01', '+' || (i * 23) || ' days'), 1000 + i * 7919 % 90000,
  CASE i % 3 WHEN 0 THEN 'Loan' WHEN 1 THEN 'Sale' ELSE 'Free' END FROM n;
