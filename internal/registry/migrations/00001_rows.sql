-- +goose Up
-- The statements are plain enough for SQLite and PostgreSQL alike: text, bigint and boolean-free.

CREATE TABLE addons (
    key           TEXT   NOT NULL PRIMARY KEY,
    source        TEXT   NOT NULL CHECK (source IN ('chart', 'address')),
    chart_ref     TEXT   NOT NULL DEFAULT '',
    chart_version TEXT   NOT NULL DEFAULT '',
    chart_digest  TEXT   NOT NULL DEFAULT '',
    address       TEXT   NOT NULL DEFAULT '',
    title         TEXT   NOT NULL DEFAULT '',
    version       TEXT   NOT NULL DEFAULT '',
    manifest      TEXT   NOT NULL,
    registered_at BIGINT NOT NULL
);

-- An app without an addon was registered by hand.
CREATE TABLE apps (
    key         TEXT NOT NULL PRIMARY KEY,
    addon       TEXT REFERENCES addons (key) ON DELETE CASCADE,
    proxy_key   TEXT NOT NULL UNIQUE,
    proxy_url   TEXT NOT NULL,
    base_url    TEXT NOT NULL,
    title       TEXT NOT NULL DEFAULT '',
    description TEXT NOT NULL DEFAULT '',
    icon        TEXT NOT NULL DEFAULT ''
);
CREATE INDEX apps_addon ON apps (addon);

CREATE TABLE tiles (
    key         TEXT   NOT NULL PRIMARY KEY,
    addon       TEXT   REFERENCES addons (key) ON DELETE CASCADE,
    app         TEXT   NOT NULL REFERENCES apps (key) ON DELETE CASCADE,
    title       TEXT   NOT NULL DEFAULT '',
    description TEXT   NOT NULL DEFAULT '',
    icon        TEXT   NOT NULL DEFAULT '',
    target      TEXT   NOT NULL,
    space_key   TEXT   NOT NULL DEFAULT '',
    space_title TEXT   NOT NULL DEFAULT '',
    space_ord   BIGINT NOT NULL DEFAULT 0,
    ord         BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX tiles_addon ON tiles (addon);
CREATE INDEX tiles_app ON tiles (app);

CREATE TABLE slots (
    key   TEXT   NOT NULL PRIMARY KEY,
    addon TEXT   REFERENCES addons (key) ON DELETE CASCADE,
    app   TEXT   NOT NULL REFERENCES apps (key) ON DELETE CASCADE,
    slot  TEXT   NOT NULL,
    kind  TEXT   NOT NULL DEFAULT '',
    label TEXT   NOT NULL DEFAULT '',
    icon  TEXT   NOT NULL DEFAULT '',
    url   TEXT   NOT NULL DEFAULT '',
    ord   BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX slots_addon ON slots (addon);
CREATE INDEX slots_app ON slots (app);

-- A workload belongs to one addon.
CREATE TABLE components (
    addon    TEXT   NOT NULL REFERENCES addons (key) ON DELETE CASCADE,
    name     TEXT   NOT NULL,
    workload TEXT   NOT NULL UNIQUE,
    role     TEXT   NOT NULL CHECK (role IN ('primary', 'required', 'optional')),
    summary  TEXT   NOT NULL DEFAULT '',
    topics   TEXT   NOT NULL DEFAULT '[]',
    ord      BIGINT NOT NULL,
    PRIMARY KEY (addon, name)
);

-- Why an addon could not be registered the last time it was tried. The addon need not be in addons: it may
-- never have been registered, and one that was stays registered.
CREATE TABLE registration_errors (
    addon   TEXT   NOT NULL PRIMARY KEY,
    message TEXT   NOT NULL,
    since   BIGINT NOT NULL
);

-- +goose Down
DROP TABLE registration_errors;
DROP TABLE components;
DROP TABLE slots;
DROP TABLE tiles;
DROP TABLE apps;
DROP TABLE addons;
