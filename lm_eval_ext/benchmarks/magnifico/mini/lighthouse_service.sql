-- A lighthouse service: its lights, who watched them, and what was renewed. Dates are texts.

CREATE TABLE lights (
  code TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  coast TEXT NOT NULL,
  builder TEXT NOT NULL,
  lamp TEXT NOT NULL,
  tower_m REAL NOT NULL,
  range_km INTEGER NOT NULL,
  lit_on TEXT NOT NULL
);

CREATE TABLE wardens (
  warden_id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  village TEXT NOT NULL,
  joined_on TEXT NOT NULL
);

CREATE TABLE watches (
  watch_id INTEGER PRIMARY KEY,
  warden_id INTEGER NOT NULL REFERENCES wardens (warden_id),
  light_code TEXT NOT NULL REFERENCES lights (code),
  began_on TEXT NOT NULL,
  ended_on TEXT NOT NULL,
  storms INTEGER NOT NULL
);

CREATE TABLE refits (
  refit_id INTEGER PRIMARY KEY,
  light_code TEXT NOT NULL REFERENCES lights (code),
  part TEXT NOT NULL,
  cost INTEGER NOT NULL,
  done_on TEXT NOT NULL
);

INSERT INTO lights VALUES
  ('A1', 'Gull Stack', 'north', 'Orme & Daughters', 'electric', 31.5, 38, '1871-09-04'),
  ('B4', 'Candle Ness', 'east', 'Harrow Brothers', 'electric', 24.0, 29, '1902-05-17'),
  ('C2', 'Pilot Rock', 'west', 'Orme & Daughters', 'gas', 42.5, 41, '1889-11-30'),
  ('D7', 'Saltholm', 'south', 'Tamsin Reed', 'solar', 18.5, 15, '1931-03-08'),
  ('E3', 'Merrow Point', 'north', 'Coast Works', 'halogen', 11.5, 14, '1950-01-01'),
  ('F5', 'Broken Anchor', 'east', 'Coast Works', 'electric', 35.0, 40, '1963-07-22'),
  ('G9', 'Hollow Head', 'west', 'Ilse Varga', 'solar', 15.0, 19, '1974-10-12'),
  ('H6', 'Thrift Island', 'south', 'Harrow Brothers', 'gas', 21.0, 24, '1912-06-25'),
  ('J8', 'Long Skerry', 'east', 'Orme & Daughters', 'electric', 46.0, 48, '1895-02-14'),
  ('K1', 'Dunlin Bar', 'north', 'Finlay Pask', 'solar', 12.5, 16, '1938-04-01'),
  ('L2', 'Old Chapel', 'south', 'Coast Works', 'acetylene', 29.5, 34, '1949-12-31');

INSERT INTO wardens VALUES
  (1, 'Agnes Croft', 'Netherby', '1981-03-01'),
  (2, 'Bram Tolley', 'Saint Ebb', '1994-06-15'),
  (3, 'Cora Lindqvist', 'Netherby', '2001-09-10'),
  (4, 'Duncan Iyer', 'Quarrow', '1979-01-20'),
  (5, 'Esme Farrant', 'Saint Ebb', '2008-11-03'),
  (6, 'Fergus Oduya', 'Marle', '1999-02-27'),
  (7, 'Greta Blom', 'Netherby', '2007-01-05'),
  (8, 'Hector Quill', 'Tidewick', '1990-08-18');

INSERT INTO watches VALUES
  (1, 1, 'A1', '1981-04-01', '1984-10-01', 9),
  (2, 1, 'J8', '1985-01-10', '1990-06-30', 17),
  (3, 2, 'B4', '1994-07-01', '1997-03-15', 6),
  (4, 2, 'F5', '1997-04-01', '2003-08-20', 14),
  (5, 3, 'E3', '2001-10-01', '2006-12-31', 11),
  (6, 4, 'C2', '1979-02-01', '1988-05-05', 21),
  (7, 4, 'L2', '1988-06-01', '1995-09-30', 8),
  (8, 5, 'D7', '2009-01-05', '2011-07-19', 3),
  (9, 5, 'K1', '2011-08-01', '2016-02-29', 5),
  (10, 6, 'C2', '1999-03-10', '2007-11-11', 24),
  (11, 6, 'H6', '2008-01-01', '2008-01-31', 7),
  (12, 7, 'A1', '2012-06-01', '2019-10-31', 19),
  (13, 7, 'J8', '2019-11-15', '2021-05-01', 4),
  (14, 8, 'G9', '1990-09-01', '1998-12-24', 12),
  (15, 6, 'C2', '2008-02-01', '2013-03-31', 10),
  (16, 7, 'A1', '2007-01-15', '2012-05-20', 13);

INSERT INTO refits VALUES
  (1, 'A1', 'lens', 4200, '1993-05-12'),
  (2, 'A1', 'gallery', 1850, '2004-09-01'),
  (3, 'B4', 'lantern', 2600, '1998-03-30'),
  (4, 'C2', 'lens', 5100, '2001-07-07'),
  (5, 'C2', 'stairs', 1275, '2010-10-10'),
  (6, 'D7', 'battery', 640, '2015-02-02'),
  (7, 'E3', 'lantern', 2950, '1996-06-21'),
  (8, 'F5', 'foghorn', 3300, '2000-01-01'),
  (9, 'G9', 'battery', 720, '2016-08-15'),
  (10, 'H6', 'stairs', 980, '2009-04-04'),
  (11, 'J8', 'lens', 4750, '1997-11-23'),
  (12, 'J8', 'gallery', 2100, '2012-01-17'),
  (13, 'K1', 'battery', 590, '2018-05-29'),
  (14, 'L2', 'lantern', 2380, '2003-03-13'),
  (15, 'B4', 'davit', 410, '1987-06-30');
