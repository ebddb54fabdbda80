-- +goose Up
-- Writes that were sent with an Idempotency-Key. There is no value of an input here, and no digest of one that is secret.

CREATE TABLE requests (
    id          TEXT   NOT NULL PRIMARY KEY,
    fingerprint TEXT   NOT NULL,
    attempt     TEXT   NOT NULL,
    suffix      TEXT   NOT NULL,
    busy_until  BIGINT NOT NULL,
    expires     BIGINT NOT NULL,
    answer      TEXT   NOT NULL DEFAULT ''
);
CREATE INDEX requests_expires ON requests (expires);

-- +goose Down
DROP TABLE requests;
