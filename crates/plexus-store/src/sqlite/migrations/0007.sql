-- Who was asked about an open approval before the one who is asked now. They are told of its end, and those it went on
-- without (`passed_over`) are still shown it. Nothing is left of an approval that has come to its end.
CREATE TABLE asked_before (
    addressee   TEXT NOT NULL,
    number      INTEGER NOT NULL,
    approval    TEXT NOT NULL REFERENCES approvals (id),
    passed_over INTEGER NOT NULL,
    PRIMARY KEY (addressee, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX asked_before_about ON asked_before (approval, number);

-- Up to which number of the feed a session was woken: once for each.
ALTER TABLE sessions ADD COLUMN woken_to INTEGER NOT NULL DEFAULT 0;
