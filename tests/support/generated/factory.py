"""A database of a manufacturer with 40 tables: names in capitals, a key for each, 53 links.

Each line is a table, its number of rows, and its columns. A column's kind says what it holds: ``>``
a link to another table, ``pick`` one of a few, the first ones more often, ``name`` a word and what
it is a name of; ``int``, ``real`` and ``date`` are drawn between two ends, ``after`` is some days
after another column.
"""

import datetime
import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

TABLES = """
COUNTRY 14: COUNTRY_NAME=proper CONTINENT=pick:Europe|Asia|Africa|America POPULATION=int:2:90
REGION 20: REGION_NAME=name:Region COUNTRY_ID=>COUNTRY CLIMATE=pick:Mild|Dry|Wet
BRANCH 16: BRANCH_NAME=name:Branch CITY=city REGION_ID=>REGION OPENING_YEAR=int:1960:2015 FLOOR_AREA=int:200:9000
DEPARTMENT 18: DEPARTMENT_NAME=name:Department BRANCH_ID=>BRANCH ANNUAL_BUDGET=int:50:900
OCCUPATION 15: TITLE=name:Officer CATEGORY=pick:Technical|Commercial|Legal|Medical MINIMUM_SALARY=int:1500:4000 MAXIMUM_SALARY=int:4100:9900
EMPLOYEE 90: FIRST_NAME=first LAST_NAME=last HIRE_DATE=date:2008:2022 SALARY=int:1800:9500 CITY=city DEPARTMENT_ID=>DEPARTMENT OCCUPATION_ID=>OCCUPATION MANAGER_ID=>EMPLOYEE
CONTRACT 90: EMPLOYEE_ID=>EMPLOYEE CONTRACT_TYPE=pick:Permanent|Temporary|Apprentice START_DATE=date:2008:2020 END_DATE=after:START_DATE:60:2000 WEEKLY_HOURS=int:15:42
ABSENCE 120: EMPLOYEE_ID=>EMPLOYEE REASON=pick:Illness|Holiday|Training|Parental FIRST_DAY=date:2020:2022 DAYS=int:1:30
COURSE 24: COURSE_NAME=name:Course SUBJECT=pick:Safety|Welding|Languages|Software|Law COURSE_FEE=int:80:1900 DURATION=int:1:12
TRAINING 110: EMPLOYEE_ID=>EMPLOYEE COURSE_ID=>COURSE COMPLETION_DATE=date:2015:2022 SCORE=int:20:100
CUSTOMER_GROUP 5: CUSTOMER_GROUP_NAME=name:Group DISCOUNT=int:0:20
CUSTOMER 80: CUSTOMER_NAME=name:Trading CITY=city COUNTRY_ID=>COUNTRY CUSTOMER_GROUP_ID=>CUSTOMER_GROUP CREDIT_LIMIT=int:1000:90000 REGISTRATION_DATE=date:2005:2021
CONTACT 85: FIRST_NAME=first LAST_NAME=last CUSTOMER_ID=>CUSTOMER LANGUAGE=pick:English|German|Spanish|French
QUOTE 90: CUSTOMER_ID=>CUSTOMER EMPLOYEE_ID=>EMPLOYEE QUOTE_DATE=date:2019:2022 TOTAL_AMOUNT=real:100:9000 OUTCOME=pick:Accepted|Rejected|Pending
SALES_ORDER 200: CUSTOMER_ID=>CUSTOMER EMPLOYEE_ID=>EMPLOYEE ORDER_DATE=date:2019:2022 SHIPPED_DATE=after:ORDER_DATE:1:40 TOTAL_AMOUNT=real:50:9900 PAYMENT_METHOD=pick:Card|Transfer|Cash
ORDER_POSITION 400: SALES_ORDER_ID=>SALES_ORDER PRODUCT_ID=>PRODUCT QUANTITY=int:1:60 UNIT_PRICE=real:2:800
CARRIER 9: CARRIER_NAME=name:Logistics COUNTRY_ID=>COUNTRY FLEET_TYPE=pick:Road|Rail|Air
SHIPMENT 170: SALES_ORDER_ID=>SALES_ORDER CARRIER_ID=>CARRIER DEPARTURE_DATE=date:2019:2022 WEIGHT=int:2:2400 FREIGHT_COST=real:5:900
INVOICE 180: SALES_ORDER_ID=>SALES_ORDER ISSUE_DATE=date:2019:2022 DUE_DATE=after:ISSUE_DATE:10:90 TOTAL_AMOUNT=real:50:9900
PAYMENT 170: INVOICE_ID=>INVOICE PAYMENT_DATE=date:2019:2022 AMOUNT=real:20:9900 CURRENCY=pick:Euro|Dollar|Yen
COMPLAINT 60: CUSTOMER_ID=>CUSTOMER PRODUCT_ID=>PRODUCT COMPLAINT_DATE=date:2019:2022 SEVERITY=pick:Low|Medium|High REFUND=real:0:700
BRAND 12: BRAND_NAME=proper FOUNDING_YEAR=int:1890:2005 COUNTRY_ID=>COUNTRY
PRODUCT_GROUP 9: PRODUCT_GROUP_NAME=name:Tools MARGIN=int:5:60
PRODUCT 110: PRODUCT_NAME=name:Drill|Saw|Pump|Valve|Lamp PRODUCT_GROUP_ID=>PRODUCT_GROUP BRAND_ID=>BRAND COLOR=pick:Grey|Blue|Red|Yellow LIST_PRICE=real:3:900 WEIGHT=int:1:70 STOCK_QUANTITY=int:0:500
SUPPLIER 30: SUPPLIER_NAME=name:Metals|Plastics CITY=city COUNTRY_ID=>COUNTRY RATING=int:1:10
MATERIAL 40: MATERIAL_NAME=name:Steel|Resin|Copper SUPPLIER_ID=>SUPPLIER UNIT_COST=real:1:90 DENSITY=real:0:12
PURCHASE_ORDER 130: SUPPLIER_ID=>SUPPLIER EMPLOYEE_ID=>EMPLOYEE ORDER_DATE=date:2018:2022 DELIVERY_DATE=after:ORDER_DATE:3:60 TOTAL_COST=real:90:8000
PURCHASE_POSITION 260: PURCHASE_ORDER_ID=>PURCHASE_ORDER MATERIAL_ID=>MATERIAL QUANTITY=int:5:900
WAREHOUSE 8: WAREHOUSE_NAME=name:Depot CITY=city REGION_ID=>REGION CAPACITY=int:500:9000
STOCK_MOVEMENT 220: PRODUCT_ID=>PRODUCT WAREHOUSE_ID=>WAREHOUSE MOVEMENT_DATE=date:2020:2022 DIRECTION=pick:Inbound|Outbound QUANTITY=int:1:300
MACHINE 35: MACHINE_NAME=name:Press|Lathe|Robot BRANCH_ID=>BRANCH PURCHASE_DATE=date:2000:2020 PURCHASE_PRICE=int:4000:99000 MANUFACTURER=pick:Ostra|Belmo|Kanzai|Truform
MAINTENANCE 100: MACHINE_ID=>MACHINE EMPLOYEE_ID=>EMPLOYEE START_DATE=date:2018:2022 END_DATE=after:START_DATE:1:30 COST=int:40:4000
WORK_ORDER 150: PRODUCT_ID=>PRODUCT MACHINE_ID=>MACHINE START_DATE=date:2020:2022 QUANTITY=int:10:900 PRIORITY=pick:Normal|Urgent|Low
INSPECTION 120: WORK_ORDER_ID=>WORK_ORDER EMPLOYEE_ID=>EMPLOYEE INSPECTION_DATE=date:2020:2022 RESULT=pick:Passed|Failed|Repeated DEFECTS=int:0:40
VEHICLE 22: MODEL=pick:Courier|Atlas|Bison|Sprinter BRANCH_ID=>BRANCH MILEAGE=int:900:280000 SEATS=int:2:9
TRIP 140: VEHICLE_ID=>VEHICLE EMPLOYEE_ID=>EMPLOYEE DEPARTURE_DATE=date:2021:2022 DISTANCE=int:3:1400 DESTINATION=city
PROJECT 26: PROJECT_NAME=name:Initiative DEPARTMENT_ID=>DEPARTMENT CUSTOMER_ID=>CUSTOMER START_DATE=date:2015:2021 END_DATE=after:START_DATE:40:900 BUDGET=int:5000:800000
TASK 130: PROJECT_ID=>PROJECT EMPLOYEE_ID=>EMPLOYEE STATUS=pick:Open|Finished|Blocked HOURS=int:1:200
CAMPAIGN 18: CAMPAIGN_NAME=name:Campaign CHANNEL=pick:Radio|Print|Online EXPENSES=int:500:60000 START_DATE=date:2018:2022
PATENT 25: TITLE=name:Mechanism PRODUCT_GROUP_ID=>PRODUCT_GROUP FILING_DATE=date:1998:2020 LEGAL_COST=int:900:30000
"""

FIRST = (
    "Ada Bruno Carla Dario Edda Fabio Greta Hugo Ines Jonas Klara Luca Mira Nils Olga Paul".split()
)
LAST = "Abel Brandt Costa Dahl Engel Ferri Gruber Holm Ivanov Jung Kern Lind Moser Nagy Orlov Petri Quist Roth Sala Thorn".split()  # fmt: skip
CITIES = "Lyon Graz Porto Turin Bergen Malmo Leeds Gdansk".split()
FRONT = "Amber Bold Cedar Delta Ember Falcon Golden Harbor Ivory Jade Keen Lunar Maple Noble Onyx Prime Quartz River Silver Tidal Union Vivid".split()  # fmt: skip
MIDDLE = "North South East West Old New High Low Grand".split()


def build(path: Path, seed: int = 1) -> Path:
    """Writes the database; the same seed gives the same rows."""
    lines = [line.split() for line in TABLES.split("\n") if line]
    sizes = {name: int(size[:-1]) for name, size, *_ in lines}
    with closing(sqlite3.connect(path)) as connection:
        for name, size, *columns in lines:
            kinds = dict(column.split("=") for column in columns)
            declared = ", ".join(f"{column} {_type(kind)}" for column, kind in kinds.items())
            connection.execute(f"CREATE TABLE {name} ({name}_ID INTEGER PRIMARY KEY, {declared})")
            rng = random.Random(f"{seed} {name}")
            marks = ", ".join("?" * (len(kinds) + 1))
            rows = _rows(int(size[:-1]), kinds, sizes, rng)
            connection.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)
        connection.commit()
    return path


def _type(kind: str) -> str:
    if kind.startswith(">"):
        return f"INTEGER NOT NULL REFERENCES {kind[1:]}({kind[1:]}_ID)"
    return {"int": "INTEGER", "real": "REAL"}.get(kind.partition(":")[0], "TEXT") + " NOT NULL"


def _rows(
    size: int, kinds: dict[str, str], sizes: dict[str, int], rng: random.Random
) -> Iterator[list[object]]:
    names = [f"{front} {middle}" for middle in MIDDLE for front in FRONT]
    for number in range(1, size + 1):
        row: dict[str, object] = {"": number}
        for column, kind in kinds.items():
            row[column] = _value(kind, row, names[number % len(names)], sizes, rng)
        yield list(row.values())


def _value(
    kind: str, row: dict[str, object], name: str, sizes: dict[str, int], rng: random.Random
) -> object:
    how, *rest = kind.split(":")
    if how.startswith(">"):
        return rng.randint(1, sizes[how[1:]])
    if how in {"int", "real"}:
        low, high = map(int, rest)
        return rng.randint(low, high) if how == "int" else round(rng.uniform(low, high), 2)
    if how == "date":
        first, last = (datetime.date(int(year), 1, 1).toordinal() for year in rest)
        return datetime.date.fromordinal(rng.randint(first, last)).isoformat()
    if how == "after":
        start = datetime.date.fromisoformat(str(row[rest[0]]))
        return (start + datetime.timedelta(rng.randint(int(rest[1]), int(rest[2])))).isoformat()
    if how == "pick":
        found = rest[0].split("|")
        return rng.choices(found, range(len(found) + 1, 1, -1))[0]
    if how == "proper":
        return name.replace(" ", "").capitalize()
    if how == "name":
        return f"{name} {rng.choice(rest[0].split('|'))}"
    return rng.choice({"first": FIRST, "last": LAST, "city": CITIES}[how])
