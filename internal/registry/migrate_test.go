package registry

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pressly/goose/v3"
)

func TestTablesOfANewerReleaseAreRefusedAndLeftAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "registry.db")
	s, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	db := s.(*store).db
	if _, err := db.ExecContext(t.Context(), "INSERT INTO goose_db_version (version_id, is_applied) VALUES (9000, 1)"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(t.Context(), path); err == nil {
		_ = s.Close()
		t.Fatal("opened")
	}
	if !strings.Contains(err.Error(), "9000") {
		t.Errorf("got %v", err)
	}
}

func TestMigrationsGoDownAndUpAgain(t *testing.T) {
	db, err := openSQLite(filepath.Join(t.TempDir(), "registry.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	for range 2 {
		if err := migrate(t.Context(), db, goose.DialectSQLite3); err != nil {
			t.Fatal(err)
		}
		p, err := goose.NewProvider(goose.DialectSQLite3, db, mustSub(t), goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.DownTo(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		var left int
		row := db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name IN ('addons','apps','tiles','slots','components','registration_errors')")
		if err := row.Scan(&left); err != nil || left != 0 {
			t.Fatalf("%d tables left, %v", left, err)
		}
	}
}

func TestTheConnectionIsSetUpAsPromised(t *testing.T) {
	db, err := openSQLite(filepath.Join(t.TempDir(), "registry.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	for pragma, want := range map[string]string{"journal_mode": "wal", "foreign_keys": "1", "busy_timeout": "5000"} {
		var got string
		if err := db.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %q, %v", pragma, got, err)
		}
	}
}

func mustSub(t *testing.T) fs.FS {
	t.Helper()
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		t.Fatal(err)
	}
	return files
}
