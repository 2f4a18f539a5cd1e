-- A ferry line: vessels, piers, and crossings from one pier to another.

create table vessels (
    code char(2) not null,
    name varchar(30) not null,
    launched integer not null,
    engine varchar(10) not null,
    seats integer not null,
    draught_m real not null,
    primary key (code)
);

create table piers (
    pier_id integer primary key,
    name varchar(30) not null,
    shore varchar(5) not null,
    opened integer not null,
    low_water_m real not null,
    high_water_m real not null
);

create table crossings (
    crossing_id integer primary key,
    vessel_code char(2) not null,
    from_pier integer not null,
    to_pier integer not null,
    minutes integer not null,
    fare decimal(5, 2) not null,
    passengers integer not null,
    foreign key (vessel_code) references vessels (code),
    foreign key (from_pier) references piers (pier_id),
    foreign key (to_pier) references piers (pier_id)
);

insert into vessels values
    ('TB', 'Teal Bay', 1938, 'diesel', 120, 3.4),
    ('GW', 'Grey Wether', 1949, 'steam', 180, 4.1),
    ('PL', 'Plover', 1950, 'steam', 90, 2.4),
    ('OS', 'Otter Sound', 1967, 'diesel', 240, 4.8),
    ('CM', 'Clement', 1926, 'steam', 64, 2.2),
    ('HR', 'Heron', 1985, 'diesel', 150, 3.0),
    ('KS', 'Kestrel', 2004, 'hybrid', 200, 3.9),
    ('WI', 'Wilhelmina', 1911, 'steam', 110, 3.6),
    ('DN', 'Dunnock', 2016, 'electric', 76, 1.9);

insert into piers values
    (1, 'Customs Quay', 'north', 1908, 1.25, 5.25),
    (2, 'Mill Stairs', 'south', 1924, 0.5, 4.25),
    (3, 'Lime Jetty', 'east', 1949, 2.0, 6.5),
    (4, 'Abbot Landing', 'west', 1950, 1.5, 3.5),
    (5, 'Rope Walk', 'east', 1972, 0.75, 3.75),
    (6, 'Signal Slip', 'north', 1931, 2.5, 7.0),
    (7, 'Glasshouse', 'south', 1998, 1.25, 5.5),
    (8, 'Sandpiper', 'west', 1960, 1.5, 4.5);

insert into crossings values
    (1, 'TB', 1, 2, 25, 3.5, 92),
    (2, 'TB', 2, 1, 25, 3.5, 61),
    (3, 'GW', 1, 3, 40, 5.25, 150),
    (4, 'GW', 3, 1, 42, 5.25, 133),
    (5, 'PL', 4, 2, 15, 2, 38),
    (6, 'PL', 2, 4, 16, 2, 47),
    (7, 'OS', 6, 3, 70, 9, 220),
    (8, 'OS', 3, 6, 68, 9, 204),
    (9, 'CM', 5, 7, 30, 4.5, 52),
    (10, 'CM', 7, 5, 31, 4.5, 29),
    (11, 'HR', 8, 4, 20, 2.75, 110),
    (12, 'HR', 4, 8, 21, 2.75, 96),
    (13, 'KS', 6, 8, 55, 7.25, 171),
    (14, 'KS', 8, 6, 57, 7.25, 170),
    (15, 'WI', 1, 5, 35, 4.75, 73),
    (16, 'WI', 5, 1, 36, 4.75, 66),
    (17, 'DN', 7, 2, 12, 1.5, 41),
    (18, 'HR', 1, 6, 48, 6, 101),
    (19, 'KS', 3, 5, 33, 4.25, 145);
