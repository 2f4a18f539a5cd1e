CREATE TABLE mast (name TEXT PRIMARY KEY, height REAL, made INTEGER);
INSERT INTO mast VALUES ('fore', 28.5, 1931), ('main', 33, 1931), ('mizzen', 21, 1978);
CREATE VIEW spare AS SELECT name, height FROM mast WHERE made > 1950;
