package registry

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"zaentrum.io/zae/internal/fault"
	"zaentrum.io/zae/internal/postgrestest"
)

// each runs a test with an empty database of each kind.
func each(t *testing.T, test func(t *testing.T, where string)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { test(t, filepath.Join(t.TempDir(), "registry.db")) })
	t.Run("postgres", func(t *testing.T) { test(t, postgrestest.URL(t)) })
}

func TestTablesOfANewerReleaseAreRefusedAndLeftAlone(t *testing.T) {
	each(t, func(t *testing.T, where string) {
		s, err := Open(t.Context(), where)
		if err != nil {
			t.Fatal(err)
		}
		db := s.(*store).db
		if _, err := db.ExecContext(t.Context(), "INSERT INTO goose_db_version (version_id, is_applied) VALUES (9000, $1)", true); err != nil {
			t.Fatal(err)
		}
		if _, err := db.ExecContext(t.Context(), "DROP TABLE registration_errors"); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if s, err = Open(t.Context(), where); err == nil {
			_ = s.Close()
			t.Fatal("opened")
		}
		if fault.CodeOf(err) != fault.Invalid || !strings.Contains(err.Error(), "tables are of version 9000, and this release knows ") ||
			!strings.Contains(fault.From(err).Hint, "use the release that wrote them") || strings.Contains(err.Error(), postgrestest.Password) {
			t.Errorf("got %v", err)
		}
		// Nothing was made anew.
		raw, err := open(where)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = raw.Close() }()
		if _, err := raw.db.ExecContext(t.Context(), "SELECT 1 FROM registration_errors"); err == nil {
			t.Error("the tables were changed")
		}
	})
}

func TestMigrationsGoDownAndUpAgain(t *testing.T) {
	each(t, func(t *testing.T, where string) {
		s, err := open(where)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close() }()
		for range 2 {
			if err := s.migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			p, err := provider(s.db, s.dialect)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := p.DownTo(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
			for _, table := range []string{"addons", "apps", "tiles", "slots", "components", "registration_errors"} {
				if _, err := s.db.ExecContext(t.Context(), "SELECT 1 FROM "+table); err == nil {
					t.Errorf("%s is left", table)
				}
			}
		}
	})
}

func TestSeveralReplicasMigrateAtOnce(t *testing.T) {
	each(t, func(t *testing.T, where string) {
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				s, err := Open(t.Context(), where)
				if err != nil {
					t.Error(err)
					return
				}
				defer func() { _ = s.Close() }()
				if _, err := s.Addons(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		s, err := open(where)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close() }()
		p, err := provider(s.db, s.dialect)
		if err != nil {
			t.Fatal(err)
		}
		var applied int
		row := s.db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM goose_db_version WHERE version_id > 0")
		if err := row.Scan(&applied); err != nil || applied != len(p.ListSources()) {
			t.Errorf("%d migrations of %d were applied, %v", applied, len(p.ListSources()), err)
		}
	})
}

func TestTheConnectionIsSetUpAsPromised(t *testing.T) {
	s, err := open(filepath.Join(t.TempDir(), "registry.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	for pragma, want := range map[string]string{"journal_mode": "wal", "foreign_keys": "1", "busy_timeout": "5000", "synchronous": "2"} {
		var got string
		if err := s.db.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %q, %v", pragma, got, err)
		}
	}
	pg, err := open(postgrestest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = pg.Close() }()
	for setting, want := range map[string]string{"application_name": "zae-api", "idle_in_transaction_session_timeout": "30s"} {
		var got string
		if err := pg.db.QueryRowContext(t.Context(), "SHOW "+setting).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %q, %v", setting, got, err)
		}
	}
}
