-- A library that lends seeds. Every name is quoted, some hold spaces.

CREATE TABLE "Variety" (
	"Code" TEXT,
	"Name" TEXT NOT NULL,
	"Crop" TEXT NOT NULL,
	"Village" TEXT NOT NULL,
	"Coolest C" INTEGER NOT NULL,
	"Warmest C" INTEGER NOT NULL,
	"Days to Harvest" INTEGER NOT NULL,
	PRIMARY KEY ("Code")
);

CREATE TABLE "Packet" (
	"Packet No" INTEGER,
	"Code" TEXT NOT NULL,
	"Seeds" INTEGER NOT NULL,
	"Packed In" INTEGER NOT NULL,
	"Shelf" TEXT NOT NULL,
	PRIMARY KEY ("Packet No"),
	FOREIGN KEY ("Code") REFERENCES "Variety" ("Code")
);

CREATE TABLE "Borrowing" (
	"Ticket" INTEGER,
	"Packet No" INTEGER NOT NULL,
	"Gardener" TEXT NOT NULL,
	"Borrowed In" INTEGER NOT NULL,
	"Seeds Returned" INTEGER,
	PRIMARY KEY ("Ticket"),
	FOREIGN KEY ("Packet No") REFERENCES "Packet" ("Packet No")
);

INSERT INTO "Variety" VALUES
	('P1', 'Tollgate', 'pea', 'Amberley', 4, 17, 72),
	('P2', 'Widow Grey', 'pea', 'Stour End', 5, 21, 80),
	('B1', 'Coachman', 'bean', 'Amberley', 10, 27, 95),
	('B2', 'Speckled Nun', 'bean', 'Kettlebrook', 13, 27, 88),
	('B3', 'Drover', 'bean', 'Amberley', 9, 24, 101),
	('S1', 'Lantern', 'squash', 'Kettlebrook', 14, 31, 118),
	('S2', 'Pilgrim', 'squash', 'Amberley', 13, 35, 124),
	('L1', 'Frost Ear', 'lettuce', 'Wold Green', 3, 16, 54),
	('L2', 'Oakmote', 'lettuce', 'Stour End', 0, 20, 49),
	('K1', 'Crowfoot', 'kale', 'Hexley', 1, 17, 66),
	('T1', 'Ember', 'tomato', 'Amberley', 13, 28, 91),
	('T2', 'Ferryman', 'tomato', 'Kettlebrook', 14, 33, 84),
	('C1', 'Beacon', 'chard', 'Fallow', 6, 23, 62);

INSERT INTO "Packet" VALUES
	(1, 'P1', 120, 2019, 'A'),
	(2, 'P1', 85, 2021, 'A'),
	(3, 'P2', 60, 2020, 'A'),
	(4, 'B1', 40, 2018, 'B'),
	(5, 'B2', 55, 2022, 'B'),
	(6, 'B2', 35, 2020, 'C'),
	(7, 'B3', 48, 2021, 'B'),
	(8, 'S1', 24, 2022, 'C'),
	(9, 'S2', 18, 2019, 'C'),
	(10, 'L1', 300, 2023, 'D'),
	(11, 'L2', 260, 2021, 'D'),
	(12, 'K1', 220, 2020, 'E'),
	(13, 'T1', 75, 2022, 'D'),
	(14, 'T1', 64, 2023, 'B'),
	(15, 'T2', 90, 2021, 'E'),
	(16, 'C1', 150, 2018, 'A'),
	(17, 'P2', 110, 2023, 'F'),
	(18, 'L1', 140, 2018, 'D'),
	(19, 'L2', 205, 2022, 'D');

INSERT INTO "Borrowing" VALUES
	(101, 1, 'Maud', 2021, 40),
	(102, 4, 'Ivo', 2021, NULL),
	(103, 10, 'Maud', 2022, 120),
	(104, 6, 'Salma', 2022, 15),
	(105, 12, 'Ivo', 2022, 90),
	(106, 3, 'Dario', 2023, NULL),
	(107, 16, 'Maud', 2023, 75),
	(108, 9, 'Wren', 2023, 12),
	(109, 13, 'Salma', 2023, NULL),
	(110, 17, 'Ivo', 2024, 50),
	(111, 11, 'Bettina', 2024, NULL),
	(112, 7, 'Salma', 2024, 20);
