package registry

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"net/url"
	"os"

	"github.com/pressly/goose/v3"
	_ "modernc.org/sqlite" // the driver named sqlite

	"zaentrum.io/zae/internal/fault"
)

//go:embed migrations/*.sql
var migrations embed.FS

// InMemory as a path is a registry that is gone when it is closed.
const InMemory = ":memory:"

// maxConnections bounds the readers of one file; SQLite has one writer at a time anyway.
const maxConnections = 4

// Open opens the registry in an SQLite file, makes it when there is none, and brings its tables up to date.
// A file written by a newer release is refused and left alone.
func Open(ctx context.Context, path string) (Store, error) {
	db, err := openSQLite(path)
	if err != nil {
		return nil, err
	}
	if err := migrate(ctx, db, goose.DialectSQLite3); err != nil {
		_ = db.Close() // the first error is the one that counts
		return nil, fmt.Errorf("registry %s: %w", path, err)
	}
	return &store{db: db}, nil
}

func openSQLite(path string) (*sql.DB, error) {
	// Every write begins as one, so that two of them wait for each other and neither fails halfway.
	query := url.Values{"_txlock": {"immediate"}, "_pragma": {
		"busy_timeout(5000)", "journal_mode(WAL)", "foreign_keys(1)", "synchronous(NORMAL)",
	}}
	connections := maxConnections
	if path == InMemory {
		connections = 1 // each connection would have a database of its own
	} else {
		// SQLite gives its files the mode of the first one, and others have no business in them.
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, fmt.Errorf("registry: %w", err)
		}
		if err := f.Close(); err != nil {
			return nil, fmt.Errorf("registry: %w", err)
		}
	}
	dsn := "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + query.Encode()
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, fmt.Errorf("registry %s: %w", path, err)
	}
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	return db, nil
}

func migrate(ctx context.Context, db *sql.DB, dialect goose.Dialect) error {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(dialect, db, files, goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	current, target, err := p.GetVersions(ctx)
	if err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	if current > target {
		return fault.New(fault.Invalid, "tables are of version %d, and this release knows %d", current, target).
			WithHint("use the release that wrote them, or one after it")
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	return nil
}
