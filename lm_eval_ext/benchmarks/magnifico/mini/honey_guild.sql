-- A guild of beekeepers. NULL: a hive that nobody has inspected, a harvest that nobody measured.

CREATE TABLE apiaries (
    apiary_id INT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    side TEXT NOT NULL CHECK (side IN ('north', 'east', 'south', 'west')),
    tender TEXT NOT NULL,
    height_m INT NOT NULL
);

CREATE TABLE hives (
    hive_id INT NOT NULL PRIMARY KEY,
    apiary_id INT NOT NULL,
    strain TEXT NOT NULL,
    frames INT NOT NULL,
    inspected_on DATE,
    CONSTRAINT stands_in FOREIGN KEY (apiary_id) REFERENCES apiaries (apiary_id)
);

CREATE TABLE harvests (
    harvest_id INT NOT NULL PRIMARY KEY,
    hive_id INT NOT NULL,
    flower TEXT NOT NULL,
    kilos REAL NOT NULL,
    moisture REAL,
    CONSTRAINT comes_from FOREIGN KEY (hive_id) REFERENCES hives (hive_id)
);

INSERT INTO apiaries (apiary_id, name, side, tender, height_m) VALUES
    (1, 'Upper Croft', 'north', 'Ottoline Marsh', 210),
    (2, 'Pear Garth', 'east', 'Jonas Weld', 145),
    (3, 'Foxholes', 'south', 'Ottoline Marsh', 96),
    (4, 'Nun Wood', 'west', 'Petra Sandoval', 180),
    (5, 'Cold Ash', 'north', 'Petra Sandoval', 262),
    (6, 'Tithe Barn', 'east', 'Ottoline Marsh', 131),
    (7, 'Brook End', 'south', 'Silas Akande', 88);

INSERT INTO hives (hive_id, apiary_id, strain, frames, inspected_on) VALUES
    (1, 1, 'Buckfast', 10, '2023-04-11'),
    (2, 1, 'Carniolan', 12, '2023-04-11'),
    (3, 1, 'Buckfast', 4, NULL),
    (4, 2, 'Ligurian', 20, '2023-05-02'),
    (5, 2, 'Buckfast', 11, '2023-05-02'),
    (6, 3, 'Carniolan', 14, NULL),
    (7, 3, 'Carniolan', 6, '2023-06-18'),
    (8, 4, 'Heath Black', 16, NULL),
    (9, 4, 'Buckfast', 9, NULL),
    (10, 5, 'Heath Black', 18, '2023-05-15'),
    (11, 5, 'Buckfast', 13, NULL),
    (12, 6, 'Carniolan', 15, '2023-05-20'),
    (13, 6, 'Ligurian', 8, NULL),
    (14, 7, 'Cliff Grey', 5, NULL),
    (15, 7, 'Buckfast', 17, '2023-06-01'),
    (16, 4, 'Moor Gold', 19, '2023-06-09');

INSERT INTO harvests (harvest_id, hive_id, flower, kilos, moisture) VALUES
    (1, 1, 'clover', 12.5, 17.2),
    (2, 1, 'heather', 8.0, NULL),
    (3, 2, 'clover', 15.0, 18.1),
    (4, 4, 'lime', 24.0, 16.9),
    (5, 4, 'bramble', 18.5, 17.5),
    (6, 5, 'clover', 9.5, NULL),
    (7, 6, 'bramble', 14.0, 18.4),
    (8, 7, 'borage', 6.5, 19.0),
    (9, 8, 'heather', 20.0, 17.0),
    (10, 8, 'lime', 11.0, NULL),
    (11, 9, 'heather', 7.0, 18.8),
    (12, 10, 'heather', 22.5, 16.4),
    (13, 10, 'clover', 13.5, 17.8),
    (14, 11, 'lime', 10.0, 17.1),
    (15, 12, 'bramble', 16.5, 18.0),
    (16, 12, 'clover', 12.0, NULL),
    (17, 13, 'sainfoin', 15.5, 17.6),
    (18, 15, 'borage', 19.5, 18.6),
    (19, 15, 'bramble', 17.5, 18.3),
    (20, 3, 'clover', 4.5, NULL),
    (21, 16, 'phacelia', 21.0, 17.9);
