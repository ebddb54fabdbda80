-- +goose Up
-- Who did what to which addon. States name inputs by their paths; there is no value of one here.

CREATE TABLE audit (
    id       BIGINT NOT NULL PRIMARY KEY,
    at       BIGINT NOT NULL,
    subject  TEXT   NOT NULL,
    client   TEXT   NOT NULL,
    username TEXT   NOT NULL DEFAULT '',
    verb     TEXT   NOT NULL,
    addon    TEXT   NOT NULL DEFAULT '',
    outcome  TEXT   NOT NULL,
    code     TEXT   NOT NULL DEFAULT '',
    status   BIGINT NOT NULL DEFAULT 0,
    trace    TEXT   NOT NULL DEFAULT '',
    changes  TEXT   NOT NULL DEFAULT '{}'
);
CREATE INDEX audit_addon ON audit (addon, id);
CREATE INDEX audit_outcome ON audit (outcome, id);

-- +goose Down
DROP TABLE audit;
