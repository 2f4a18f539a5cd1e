# ruff: noqa: E501 (a pair reads best on one line)
"""Pairs of queries over one small schema: equivalent ones, and ones that only look so.

Each grade of proof has both.
"""

SCHEMA = """
CREATE TABLE shelf (id INTEGER PRIMARY KEY, room TEXT NOT NULL, width INTEGER);
CREATE TABLE book (
  isbn TEXT NOT NULL PRIMARY KEY, title TEXT, pages INTEGER, shelf_id INTEGER, tag TEXT UNIQUE,
  label TEXT COLLATE NOCASE, free, price REAL, UNIQUE (title, pages)
);
CREATE TABLE loan (book TEXT REFERENCES book (isbn), day INTEGER NOT NULL, PRIMARY KEY (book, day));
"""

RARE = "SELECT isbn FROM book GROUP BY isbn ORDER BY COUNT(*) DESC LIMIT 1"
SECOND = "(SELECT room, COUNT(*) AS n FROM shelf GROUP BY room ORDER BY COUNT(*) DESC LIMIT 2) AS t"

SAME = [
    # at most one row
    ("SELECT COUNT(*) FROM book ORDER BY title", "SELECT COUNT(*) FROM book ORDER BY title DESC"),
    ("SELECT MAX(pages) FROM book LIMIT 1", "SELECT MAX(pages) FROM book LIMIT 2"),
    ("SELECT MAX(pages), MIN(pages) FROM book", "SELECT DISTINCT MAX(pages), MIN(pages) FROM book"),
    ("SELECT title FROM book WHERE isbn = 'a'", "SELECT DISTINCT title FROM book WHERE isbn = 'a'"),
    ("SELECT room FROM shelf WHERE id = 3 ORDER BY width LIMIT 1",
     "SELECT room FROM shelf WHERE id = 3 ORDER BY width DESC"),
    ("SELECT b.title FROM book b JOIN shelf s ON b.shelf_id = s.id WHERE b.isbn = 'a' LIMIT 1",
     "SELECT b.title FROM book b JOIN shelf s ON b.shelf_id = s.id WHERE b.isbn = 'a' LIMIT 2"),
    ("SELECT title, COUNT(*) FROM book WHERE title = 'a' GROUP BY title ORDER BY 2 LIMIT 1",
     "SELECT title, COUNT(*) FROM book WHERE title = 'a' GROUP BY title ORDER BY 2 DESC LIMIT 1"),
    (f"SELECT title FROM book WHERE isbn IN ({RARE})",
     f"SELECT DISTINCT title FROM book WHERE isbn IN ({RARE})"),
    ("SELECT title FROM book WHERE isbn = (SELECT MAX(isbn) FROM book)",
     "SELECT DISTINCT title FROM book WHERE isbn = (SELECT MAX(isbn) FROM book)"),
    ("SELECT pages FROM book WHERE tag = 'b' LIMIT 1", "SELECT pages FROM book WHERE tag = 'b'"),
    # only values count
    ("SELECT room FROM shelf WHERE id IN (SELECT shelf_id FROM book ORDER BY title)",
     "SELECT room FROM shelf WHERE id IN (SELECT DISTINCT shelf_id FROM book)"),
    ("SELECT room FROM shelf EXCEPT SELECT title FROM book",
     "SELECT DISTINCT room FROM shelf EXCEPT SELECT DISTINCT title FROM book"),
    ("SELECT room FROM shelf WHERE EXISTS (SELECT 1 FROM book WHERE shelf_id = id)",
     "SELECT room FROM shelf WHERE EXISTS (SELECT DISTINCT 1 FROM book WHERE shelf_id = id LIMIT 2)"),
    ("SELECT title FROM book WHERE pages > (SELECT width FROM shelf ORDER BY id LIMIT 1)",
     "SELECT title FROM book WHERE pages > (SELECT width FROM shelf ORDER BY id LIMIT 2)"),
    # rows that differ
    ("SELECT id, room FROM shelf", "SELECT DISTINCT id, room FROM shelf"),
    ("SELECT * FROM shelf WHERE width > 1", "SELECT DISTINCT * FROM shelf WHERE width > 1"),
    ("SELECT room, COUNT(*) FROM shelf GROUP BY room",
     "SELECT DISTINCT room, COUNT(*) FROM shelf GROUP BY room"),
    ("SELECT s.id, MAX(b.pages) FROM shelf s JOIN book b ON s.id = b.shelf_id GROUP BY b.shelf_id",
     "SELECT DISTINCT s.id, MAX(b.pages) FROM shelf s JOIN book b ON s.id = b.shelf_id"
     " GROUP BY b.shelf_id"),
    ("SELECT s.room, b.isbn FROM shelf s JOIN book b ON s.id = b.shelf_id ORDER BY b.isbn",
     "SELECT DISTINCT s.room, b.isbn FROM shelf s JOIN book b ON s.id = b.shelf_id"
     " ORDER BY b.isbn"),
    (f"SELECT t.room FROM {SECOND} ORDER BY t.n LIMIT 2", f"SELECT t.room FROM {SECOND} ORDER BY t.n"),
    ("SELECT COUNT(*) FROM book EXCEPT SELECT title FROM book WHERE pages > 2",
     "SELECT COUNT(*) FROM book EXCEPT SELECT title FROM book WHERE pages >= 2"),
    ("SELECT id FROM shelf EXCEPT SELECT b.title FROM book b WHERE b.pages > 2",
     "SELECT id FROM shelf EXCEPT SELECT b.title FROM book b"),
    ("SELECT isbn, title FROM book ORDER BY pages LIMIT 2",
     "SELECT DISTINCT isbn, title FROM book ORDER BY pages LIMIT 2"),
    # ties
    ("SELECT id FROM shelf WHERE room = 'a' ORDER BY room LIMIT 2",
     "SELECT id FROM shelf WHERE room = 'a' ORDER BY room DESC LIMIT 2"),
    ("SELECT isbn, title FROM book ORDER BY isbn, title",
     "SELECT isbn, title FROM book ORDER BY isbn, title DESC"),
    (f"SELECT title FROM book WHERE isbn IN ({RARE})",
     f"SELECT title FROM book WHERE isbn IN ({RARE.replace('DESC', 'ASC')})"),
    # aggregates
    ("SELECT COUNT(isbn) FROM book", "SELECT COUNT(DISTINCT isbn) FROM book"),
    ("SELECT COUNT(tag) FROM book", "SELECT COUNT(DISTINCT tag) FROM book"),
    ("SELECT COUNT(isbn) FROM book", "SELECT COUNT(*) FROM book"),
    ("SELECT COUNT(title) FROM book WHERE title <> 'a'", "SELECT COUNT(*) FROM book WHERE title <> 'a'"),
    ("SELECT MIN(pages) FROM book WHERE pages = 3", "SELECT MAX(pages) FROM book WHERE pages = 3"),
    ("SELECT AVG(pages) FROM book WHERE pages = 3", "SELECT MAX(pages) FROM book WHERE pages = 3"),
    ("SELECT shelf_id, MIN(shelf_id) FROM book GROUP BY shelf_id",
     "SELECT shelf_id, MAX(shelf_id) FROM book GROUP BY shelf_id"),
    ("SELECT isbn, MIN(pages) FROM book GROUP BY isbn", "SELECT isbn, MAX(pages) FROM book GROUP BY isbn"),
    # conditions
    ("SELECT isbn FROM book WHERE pages = 4 AND pages > 2", "SELECT isbn FROM book WHERE pages = 4"),
    ("SELECT isbn FROM book WHERE pages > 5 AND pages > 2",
     "SELECT isbn FROM book WHERE pages >= 2 AND pages > 5"),
    ("SELECT isbn FROM book WHERE title IN ('a', 'b') AND title = 'a'",
     "SELECT isbn FROM book WHERE title = 'a'"),
    ("SELECT isbn FROM book WHERE pages BETWEEN 2 AND 4 AND pages <> 7",
     "SELECT isbn FROM book WHERE pages BETWEEN 2 AND 4"),
    ("SELECT isbn FROM book WHERE LENGTH(title) < 8 AND LENGTH(title) <= 8",
     "SELECT isbn FROM book WHERE LENGTH(title) < 8"),
    ("SELECT room FROM shelf GROUP BY room HAVING COUNT(id) >= 1", "SELECT room FROM shelf GROUP BY room"),
    ("SELECT room FROM shelf WHERE width > 3 AND id IN (SELECT shelf_id FROM book WHERE width > 3)",
     "SELECT room FROM shelf WHERE width > 3 AND id IN (SELECT shelf_id FROM book WHERE width >= 3)"),
    ("SELECT isbn FROM book WHERE title || tag LIKE '%b%'", "SELECT isbn FROM book WHERE tag || title LIKE '%b%'"),
    ("SELECT isbn FROM book WHERE pages > 4 AND pages < 2", "SELECT isbn FROM book WHERE pages > 4 AND pages <= 2"),
]  # fmt: skip

ONLY_LOOK_SAME = [
    # NULLs
    ("SELECT COUNT(tag) FROM book", "SELECT COUNT(*) FROM book"),
    ("SELECT title FROM book WHERE pages > 2", "SELECT title FROM book WHERE pages > 2 OR pages <= 2"),
    ("SELECT tag FROM book", "SELECT DISTINCT tag FROM book"),
    ("SELECT id FROM shelf WHERE id NOT IN (SELECT shelf_id FROM book WHERE shelf_id <> 3)",
     "SELECT id FROM shelf WHERE id NOT IN (SELECT shelf_id FROM book)"),
    ("SELECT title, pages FROM book", "SELECT DISTINCT title, pages FROM book"),
    ("SELECT book FROM loan GROUP BY book ORDER BY COUNT(*) LIMIT 1",
     "SELECT book FROM loan GROUP BY book ORDER BY COUNT(*) DESC LIMIT 1"),
    ("SELECT tag FROM book GROUP BY tag ORDER BY COUNT(*) LIMIT 1",
     "SELECT tag FROM book GROUP BY tag ORDER BY COUNT(*) DESC LIMIT 1"),
    ("SELECT pages, MAX(title) FROM book WHERE pages = 3", "SELECT 3, MAX(title) FROM book WHERE pages = 3"),
    # half a key, another table's rows, a folding collation
    ("SELECT day FROM loan", "SELECT DISTINCT day FROM loan"),
    ("SELECT COUNT(DISTINCT book) FROM loan", "SELECT COUNT(book) FROM loan"),
    ("SELECT s.id FROM shelf s JOIN book b ON s.id = b.shelf_id",
     "SELECT DISTINCT s.id FROM shelf s JOIN book b ON s.id = b.shelf_id"),
    ("SELECT COUNT(DISTINCT s.id) FROM shelf s JOIN book b ON s.id = b.shelf_id",
     "SELECT COUNT(s.id) FROM shelf s JOIN book b ON s.id = b.shelf_id"),
    ("SELECT isbn FROM book WHERE label = 'b' ORDER BY label, isbn",
     "SELECT isbn FROM book WHERE label = 'b' ORDER BY isbn DESC"),
    ("SELECT MIN(label) FROM book WHERE label = 'b'", "SELECT MAX(pages) FROM book WHERE label = 'b'"),
    ("SELECT s.room FROM shelf s LEFT JOIN book b ON b.shelf_id = s.id AND b.isbn = 'a'",
     "SELECT DISTINCT s.room FROM shelf s LEFT JOIN book b ON b.shelf_id = s.id AND b.isbn = 'a'"),
    # LIMIT, ORDER BY and DISTINCT where they do count
    ("SELECT room FROM shelf WHERE id IN (SELECT shelf_id FROM book ORDER BY pages LIMIT 1)",
     "SELECT room FROM shelf WHERE id IN (SELECT shelf_id FROM book ORDER BY pages DESC LIMIT 1)"),
    ("SELECT room FROM shelf WHERE id IN (SELECT shelf_id FROM book ORDER BY shelf_id LIMIT 2)",
     "SELECT room FROM shelf WHERE id IN (SELECT DISTINCT shelf_id FROM book ORDER BY shelf_id LIMIT 2)"),
    ("SELECT title FROM book ORDER BY pages LIMIT 1", "SELECT DISTINCT title FROM book ORDER BY pages LIMIT 2"),
    ("SELECT pages FROM book ORDER BY pages LIMIT 2", "SELECT DISTINCT pages FROM book ORDER BY pages LIMIT 2"),
    ("SELECT title FROM book WHERE pages > (SELECT width FROM shelf ORDER BY id LIMIT 1 OFFSET 1)",
     "SELECT title FROM book WHERE pages > (SELECT width FROM shelf ORDER BY id LIMIT 1)"),
    (f"SELECT t.room FROM {SECOND} ORDER BY t.n LIMIT 1", f"SELECT t.room FROM {SECOND} ORDER BY t.n LIMIT 2"),
    ("SELECT id FROM shelf WHERE room <> 'a' ORDER BY room", "SELECT id FROM shelf WHERE room <> 'a' ORDER BY room DESC"),
    ("SELECT id FROM shelf WHERE room = 'a' OR id = 2 ORDER BY room",
     "SELECT id FROM shelf WHERE room = 'a' OR id = 2 ORDER BY room DESC"),
    ("SELECT MAX(pages) AS isbn FROM book GROUP BY title ORDER BY isbn",
     "SELECT MAX(pages) AS isbn FROM book GROUP BY title ORDER BY isbn DESC"),
    ("SELECT title AS isbn, pages FROM book ORDER BY isbn, pages",
     "SELECT title AS isbn, pages FROM book ORDER BY isbn, pages DESC"),
    ("SELECT room FROM shelf UNION ALL SELECT title FROM book",
     "SELECT DISTINCT room FROM shelf UNION ALL SELECT title FROM book"),
    # the plan shows: SQLite reads the key's index for DISTINCT
    ("SELECT tag, isbn FROM book WHERE tag <> ''", "SELECT DISTINCT tag FROM book WHERE tag <> ''"),
    ("SELECT width FROM shelf EXCEPT SELECT title FROM book WHERE pages > 2",
     "SELECT width FROM shelf EXCEPT SELECT title FROM book"),
    ("SELECT id FROM shelf EXCEPT SELECT free FROM book", "SELECT id FROM shelf EXCEPT SELECT title FROM book"),
    ("SELECT title FROM book EXCEPT SELECT room FROM shelf WHERE id > 2", "SELECT title FROM book EXCEPT SELECT room FROM shelf"),
    ("SELECT id FROM shelf INTERSECT SELECT shelf_id FROM book", "SELECT id FROM shelf INTERSECT SELECT title FROM book"),
    ("SELECT tag FROM book ORDER BY tag LIMIT 2", "SELECT DISTINCT tag FROM book ORDER BY tag LIMIT 2"),
    ("SELECT tag FROM book WHERE tag <> 'q' AND pages > 0 LIMIT 1", "SELECT DISTINCT tag FROM book WHERE pages > 0 LIMIT 1"),
    # aggregates
    ("SELECT SUM(pages) FROM book WHERE pages = 3", "SELECT MAX(pages) FROM book WHERE pages = 3"),
    ("SELECT title, MIN(pages) FROM book GROUP BY title", "SELECT title, MAX(pages) FROM book GROUP BY title"),
    ("SELECT COUNT(*) FROM book GROUP BY isbn", "SELECT COUNT(*) FROM book"),
    # an average is a float, which divides and reads otherwise than the integer that it equals
    ("SELECT AVG(pages) / 2 FROM book WHERE pages = 3", "SELECT MAX(pages) / 2 FROM book WHERE pages = 3"),
    ("SELECT id FROM shelf WHERE room = (SELECT AVG(pages) FROM book WHERE pages = 3)",
     "SELECT id FROM shelf WHERE room = (SELECT MAX(pages) FROM book WHERE pages = 3)"),
    ("SELECT id / (SELECT AVG(pages) FROM book WHERE pages = 3) FROM shelf",
     "SELECT id / (SELECT MAX(pages) FROM book WHERE pages = 3) FROM shelf"),
    # DISTINCT takes "a" for "A" in a column of that collation; what is around it need not
    ("SELECT id FROM shelf WHERE room IN (SELECT DISTINCT label FROM book)", "SELECT id FROM shelf WHERE room IN (SELECT label FROM book)"),
    ("SELECT t.label FROM (SELECT label, pages FROM book LIMIT 2) AS t ORDER BY t.pages LIMIT 1",
     "SELECT DISTINCT t.label FROM (SELECT label, pages FROM book LIMIT 2) AS t ORDER BY t.pages LIMIT 1"),
    # in two pairs of brackets it is the first row's value
    ("SELECT id FROM shelf WHERE id IN ((SELECT shelf_id FROM book ORDER BY pages))",
     "SELECT id FROM shelf WHERE id IN ((SELECT shelf_id FROM book ORDER BY pages DESC))"),
    # conditions
    ("SELECT isbn FROM book WHERE pages >= 2 AND pages > 2", "SELECT isbn FROM book WHERE pages >= 2"),
    ("SELECT isbn FROM book WHERE pages < 4 AND pages < 2", "SELECT isbn FROM book WHERE pages < 4"),
    ("SELECT isbn FROM book WHERE pages <= 4 AND pages <> 4", "SELECT isbn FROM book WHERE pages <= 4"),
    ("SELECT isbn FROM book WHERE title > 10 AND title > 9", "SELECT isbn FROM book WHERE title > 10"),
    ("SELECT isbn FROM book WHERE free > 3 AND free < 'a'", "SELECT isbn FROM book WHERE free > 3"),
    ("SELECT isbn FROM book WHERE pages > 2 AND pages < 3", "SELECT isbn FROM book WHERE pages < 3 AND pages > 3"),
    ("SELECT isbn FROM book WHERE label = 'b' AND label = 'B'", "SELECT isbn FROM book WHERE label = 'b' AND label = 'c'"),
    ("SELECT room FROM shelf GROUP BY room HAVING COUNT(width) >= 1", "SELECT room FROM shelf GROUP BY room"),
    ("SELECT room FROM shelf WHERE width > 3 OR id IN (SELECT shelf_id FROM book WHERE width > 3)",
     "SELECT room FROM shelf WHERE width > 3 OR id IN (SELECT shelf_id FROM book)"),
    ("SELECT room FROM shelf WHERE width > 3 AND id IN (SELECT shelf_id FROM book WHERE pages > 3)",
     "SELECT room FROM shelf WHERE width > 3 AND id IN (SELECT shelf_id FROM book)"),
    ("SELECT isbn FROM book WHERE title || tag LIKE '%ab%'", "SELECT isbn FROM book WHERE tag || title LIKE '%ab%'"),
    ("SELECT isbn FROM book WHERE title || tag LIKE 'b%'", "SELECT isbn FROM book WHERE tag || title LIKE 'b%'"),
    ("SELECT COUNT(*) FROM book WHERE pages > 4 AND pages < 2", "SELECT MAX(pages) FROM book WHERE pages > 4 AND pages < 2"),
]  # fmt: skip

COUNTED = "SELECT title, COUNT(isbn) AS n FROM book GROUP BY isbn ORDER BY COUNT(isbn) DESC"
ONES = f"SELECT t.title FROM ({COUNTED} LIMIT 2) AS t ORDER BY t.n LIMIT 1"
AROUND = (
    "SELECT s.room FROM shelf s WHERE s.width IN (SELECT t.width FROM"
    " (SELECT s.width, COUNT(*) AS n FROM book b GROUP BY b.title ORDER BY COUNT(*) DESC LIMIT 2)"
    " AS t ORDER BY t.n LIMIT 1)"
)

SAME_BUT_FOR_WHAT_IS_OPEN = [
    # rows that differ, in an order that nothing settles
    ("SELECT book, day FROM loan WHERE day <> 2", "SELECT DISTINCT book, day FROM loan WHERE day <> 2"),
    ("SELECT l.day FROM loan l JOIN book b ON l.book = b.isbn WHERE b.isbn = 'a'",
     "SELECT DISTINCT l.day FROM loan l JOIN book b ON l.book = b.isbn WHERE b.isbn = 'a'"),
    ("SELECT tag FROM book WHERE tag <> 'q' ORDER BY pages LIMIT 2",
     "SELECT DISTINCT tag FROM book WHERE tag <> 'q' ORDER BY pages LIMIT 2"),
    ("SELECT isbn FROM book GROUP BY pages", "SELECT DISTINCT isbn FROM book GROUP BY pages"),
    ("SELECT title || tag, COUNT(*) FROM book GROUP BY title || tag",
     "SELECT DISTINCT title || tag, COUNT(*) FROM book GROUP BY title || tag"),
    ("SELECT tag FROM book WHERE tag <> '' LIMIT 3", "SELECT DISTINCT tag FROM book WHERE tag <> '' LIMIT 3"),
    # an index that is read backwards
    ("SELECT day FROM loan WHERE book IN (SELECT MAX(book) FROM loan) ORDER BY book",
     "SELECT day FROM loan WHERE book IN (SELECT MAX(book) FROM loan) ORDER BY book DESC"),
    ("SELECT l.day FROM loan l JOIN book b ON l.book = b.isbn WHERE b.isbn IN (SELECT MAX(isbn) FROM book) ORDER BY l.book",
     "SELECT l.day FROM loan l JOIN book b ON l.book = b.isbn WHERE b.isbn IN (SELECT MAX(isbn) FROM book) ORDER BY l.book DESC"),
    # tables in FROM of which any row will do
    (ONES, ONES.replace("t.n LIMIT", "t.n DESC LIMIT")),
    (ONES, ONES.replace("LIMIT 2", "LIMIT 3")),
    (ONES, ONES.replace("LIMIT 2", "LIMIT 1")),
    (ONES, ONES.replace(" LIMIT 2", "")),
    ("SELECT room FROM (SELECT room FROM shelf LIMIT 3) AS t LIMIT 2", "SELECT room FROM (SELECT room FROM shelf) AS t LIMIT 2"),
    ("SELECT room FROM (SELECT room FROM shelf LIMIT 2) AS t", "SELECT room FROM (SELECT room FROM shelf) AS t LIMIT 2"),
    # only whether there is a row counts
    (AROUND, AROUND.replace("LIMIT 2", "LIMIT 1")),
    (AROUND, AROUND.replace(" LIMIT 2", "")),
    (AROUND, AROUND.replace("t.n LIMIT 1", "t.n DESC LIMIT 2")),
    (AROUND, AROUND.replace("COUNT(*) DESC", "COUNT(*)")),
    (AROUND, AROUND.replace("SELECT s.width,", "SELECT DISTINCT s.width,")),
]  # fmt: skip

ONLY_LOOK_OPEN = [
    # duplicates go before the rest is sorted
    ("SELECT title FROM book ORDER BY pages DESC LIMIT 1", "SELECT DISTINCT title FROM book ORDER BY pages DESC LIMIT 1"),
    ("SELECT shelf_id FROM book GROUP BY isbn ORDER BY MAX(price) LIMIT 1",
     "SELECT DISTINCT shelf_id FROM book GROUP BY isbn ORDER BY MAX(price) LIMIT 1"),
    ("SELECT title AS t FROM book ORDER BY LENGTH(isbn) DESC LIMIT 1",
     "SELECT DISTINCT title AS t FROM book ORDER BY LENGTH(isbn) DESC LIMIT 1"),
    ("SELECT label FROM book ORDER BY label COLLATE BINARY LIMIT 1",
     "SELECT DISTINCT label FROM book ORDER BY label COLLATE BINARY LIMIT 1"),
    ("SELECT pages AS title FROM book ORDER BY LENGTH(title) LIMIT 1",
     "SELECT DISTINCT pages AS title FROM book ORDER BY LENGTH(title) LIMIT 1"),
    # more rows than one, duplicates among them
    ("SELECT title, pages FROM book ORDER BY pages LIMIT 2", "SELECT DISTINCT title, pages FROM book ORDER BY pages LIMIT 2"),
    ("SELECT title FROM book LIMIT 1 OFFSET 1", "SELECT DISTINCT title FROM book LIMIT 1 OFFSET 1"),
    ("SELECT title FROM book GROUP BY pages", "SELECT DISTINCT title FROM book GROUP BY pages"),
    ("SELECT MAX(pages) FROM book GROUP BY pages || title, tag", "SELECT DISTINCT MAX(pages) FROM book GROUP BY pages || title, tag"),
    ("SELECT LENGTH(title), COUNT(*) FROM book GROUP BY title", "SELECT DISTINCT LENGTH(title), COUNT(*) FROM book GROUP BY title"),
    ("SELECT t.title FROM (SELECT title, COUNT(*) AS n FROM book GROUP BY pages ORDER BY COUNT(*) DESC LIMIT 2) AS t ORDER BY t.n LIMIT 1",
     "SELECT t.title FROM (SELECT DISTINCT title, COUNT(*) AS n FROM book GROUP BY pages ORDER BY COUNT(*) DESC LIMIT 2) AS t"
     " ORDER BY t.n LIMIT 1"),
    ("SELECT b.isbn FROM book b JOIN loan l ON l.book = b.isbn", "SELECT DISTINCT b.isbn FROM book b JOIN loan l ON l.book = b.isbn"),
    # rows that are chosen
    ("SELECT room FROM (SELECT room, width FROM shelf ORDER BY width LIMIT 2) AS t LIMIT 1",
     "SELECT room FROM (SELECT room, width FROM shelf ORDER BY width) AS t ORDER BY width DESC LIMIT 1"),
    ("SELECT room FROM (SELECT room, width FROM shelf LIMIT 2) AS t WHERE width > 1",
     "SELECT room FROM (SELECT room, width FROM shelf) AS t WHERE width > 1 LIMIT 2"),
    ("SELECT COUNT(*) FROM (SELECT room FROM shelf LIMIT 2) AS t", "SELECT COUNT(*) FROM (SELECT room FROM shelf) AS t LIMIT 2"),
    ("SELECT DISTINCT room FROM (SELECT room FROM shelf LIMIT 2) AS t", "SELECT DISTINCT room FROM (SELECT room FROM shelf) AS t LIMIT 2"),
    ("SELECT room FROM (SELECT room FROM shelf LIMIT 2) AS t LIMIT 1", "SELECT room FROM (SELECT room FROM shelf LIMIT 2) AS t LIMIT 2"),
    (ONES.replace("COUNT(isbn)", "COUNT(tag)"), ONES.replace("COUNT(isbn)", "COUNT(tag)").replace("t.n LIMIT", "t.n DESC LIMIT")),
    (AROUND.replace("SELECT s.width,", "SELECT b.pages AS width,"),
     AROUND.replace("SELECT s.width,", "SELECT b.pages AS width,").replace("LIMIT 2", "LIMIT 1")),
    (AROUND, AROUND.replace("LIMIT 2", "LIMIT 0")),
    ("SELECT id FROM shelf WHERE id IN (SELECT rowid FROM book LIMIT 1)", "SELECT id FROM shelf WHERE id IN (SELECT rowid FROM book LIMIT 3)"),
]  # fmt: skip

LOOKUP = "SELECT id FROM shelf WHERE width > (SELECT pages FROM book WHERE isbn = 'a' AND title > 'a' AND pages < 3)"

SAME_UNLESS_EMPTY = [
    ("SELECT title FROM book WHERE isbn = 'a' AND pages > 1", "SELECT title FROM book WHERE isbn = 'a'"),
    ("SELECT title FROM book WHERE isbn = 'a' AND pages > 1", "SELECT title FROM book WHERE isbn = 'a' AND pages >= 1"),
    ("SELECT title FROM book WHERE isbn = 'a' AND pages > 1", "SELECT title FROM book WHERE isbn = 'a' AND (pages > 1 OR tag = 'b')"),
    (f"SELECT title FROM book WHERE pages > 1 AND isbn IN ({RARE})", f"SELECT title FROM book WHERE isbn IN ({RARE})"),
    (LOOKUP, LOOKUP.replace(" AND title > 'a'", "")),
    (LOOKUP, LOOKUP.replace("title > 'a' AND pages < 3", "(title > 'a' OR pages < 3)")),
    (LOOKUP, LOOKUP.replace("< 3", "< 4")),
    (LOOKUP.replace("id", "COUNT(*)", 1) + " GROUP BY room", LOOKUP.replace("id", "COUNT(*)", 1).replace("< 3", "< 4") + " GROUP BY room"),
]  # fmt: skip

NOT_EVEN_UNLESS_EMPTY = [
    ("SELECT title FROM book WHERE isbn = 'a' AND pages > 1", "SELECT title FROM book WHERE isbn = 'a' AND pages > 2"),
    ("SELECT title FROM book WHERE isbn = 'a' AND pages > 1", "SELECT title FROM book WHERE isbn = 'a' AND pages < 3"),
    ("SELECT title FROM book WHERE isbn = 'a' AND pages > 1", "SELECT title FROM book WHERE pages > 1"),
    ("SELECT title FROM book WHERE title = 'a' AND pages > 1", "SELECT title FROM book WHERE title = 'a'"),
    ("SELECT title FROM book WHERE isbn <> 'a' AND pages > 1", "SELECT title FROM book WHERE isbn <> 'a'"),
    ("SELECT COUNT(*) FROM book WHERE isbn = 'a' AND pages > 1", "SELECT COUNT(*) FROM book WHERE isbn = 'a'"),
    ("SELECT COUNT(*) FROM book WHERE isbn = 'a' AND pages > 1 GROUP BY isbn", "SELECT COUNT(*) FROM book WHERE isbn = 'a' AND pages > 2 GROUP BY isbn"),
    (LOOKUP, LOOKUP.replace("< 3", "< 2")),
    (LOOKUP, LOOKUP.replace("isbn = 'a' AND ", "")),
    (LOOKUP.replace("id", "COUNT(*)", 1), LOOKUP.replace("id", "COUNT(*)", 1).replace("< 3", "< 4")),
    (LOOKUP.replace("WHERE", "WHERE room = 'a' OR", 1), LOOKUP.replace("WHERE", "WHERE room = 'a' OR", 1).replace("< 3", "< 4")),
    (LOOKUP.replace("width > (", "width NOT IN ("), LOOKUP.replace("width > (", "width NOT IN (").replace("< 3", "< 4")),
    (LOOKUP.replace("width > (", "NOT width > ("), LOOKUP.replace("width > (", "NOT width > (").replace("title > 'a' AND ", "tag > 'a' AND ")),
    (LOOKUP.replace("title > 'a'", "room > 'a'"), LOOKUP.replace("room > 'a' AND ", "").replace("title > 'a' AND ", "")),
    (f"{LOOKUP} UNION SELECT 1", f"{LOOKUP.replace('< 3', '< 4')} UNION SELECT 1"),
]  # fmt: skip
