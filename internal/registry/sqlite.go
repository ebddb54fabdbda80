package registry

import (
	"database/sql"
	"fmt"
	"net/url"
	"os"

	"github.com/pressly/goose/v3"
	_ "modernc.org/sqlite" // the driver named sqlite

	"zaentrum.io/zae/internal/fault"
)

// InMemory as a path is a registry that is gone when it is closed.
const InMemory = ":memory:"

// maxReaders bounds the readers of one file; SQLite has one writer at a time anyway.
const maxReaders = 4

func openSQLite(path string) (*store, error) {
	// Every write begins as one, so that two of them wait for each other and neither fails halfway. What is committed
	// is on the disk: there are few writes.
	query := url.Values{"_txlock": {"immediate"}, "_pragma": {
		"busy_timeout(5000)", "journal_mode(WAL)", "foreign_keys(1)", "synchronous(FULL)",
	}}
	connections := maxReaders
	if path == InMemory {
		connections = 1 // each connection would have a database of its own
	} else {
		// SQLite gives its files the mode of the first one, and others have no business in them.
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, fault.New(fault.Database, "registry: %s", err).Because(err)
		}
		if err := f.Close(); err != nil {
			return nil, fault.New(fault.Database, "registry: %s", err).Because(err)
		}
	}
	dsn := "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + query.Encode()
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, fmt.Errorf("registry %s: %w", path, err)
	}
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	return &store{db: db, name: path, dialect: dialect{goose: goose.DialectSQLite3}}, nil
}
