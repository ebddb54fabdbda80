package registry

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"zaentrum.io/zae/internal/fault"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrationTimeout bounds bringing the tables up to date, the wait for another replica that does so included.
const migrationTimeout = 5 * time.Minute

// Open opens the registry, makes its tables where there are none, and brings them up to date. where is the path of an
// SQLite file, or the address of a PostgreSQL database as postgres://USER@HOST:PORT/NAME, which several processes may
// have open. Tables of a newer release are refused and left alone, with fault.Invalid; an address that cannot be read is
// fault.Usage, and a database that cannot be reached fault.Database. No error has a password in it.
func Open(ctx context.Context, where string) (Store, error) {
	s, err := open(where)
	if err != nil {
		return nil, err
	}
	if err := s.migrate(ctx); err != nil {
		_ = s.db.Close() // the first error is the one that counts
		return nil, s.told(err)
	}
	return s, nil
}

// told is an error for whoever starts a program, and reads no log: with what the database said.
func (s *store) told(err error) error {
	err = s.failed(err)
	switch f, ok := errors.AsType[*fault.Fault](err); {
	case ok && f.Code == fault.Database:
		return fault.New(fault.Database, "registry %s: %s", s.name, Cause(err)).Because(err)
	case ok && strings.Contains(f.Message, s.name):
		return err
	}
	return fmt.Errorf("registry %s: %w", s.name, err)
}

func open(where string) (*store, error) {
	scheme, _, remote := strings.Cut(where, "://")
	switch {
	case scheme == "postgres" && remote, scheme == "postgresql" && remote:
		return openPostgres(where)
	case remote:
		return nil, fault.New(fault.Usage, "the registry cannot be kept in a database of that kind").WithHint("%s", databases)
	case strings.Contains(where, "host=") || strings.Contains(where, "password="):
		return nil, fault.New(fault.Usage, "the registry's database is given as keywords").WithHint("%s", databases)
	case where == "":
		return nil, fault.New(fault.Usage, "the registry's database is not named").WithHint("%s", databases)
	}
	return openSQLite(where)
}

// databases says what a database may be.
const databases = "give the path of an SQLite file, or postgres://USER@HOST:5432/NAME"

// dialect is what is different about the two databases.
type dialect struct {
	goose goose.Dialect
	// lock keeps other processes from migrating at the same time; nil where the database itself does.
	lock func() (lock.SessionLocker, error)
}

// migrate brings the tables up to date.
func (s *store) migrate(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, migrationTimeout)
	defer cancel()
	p, err := provider(s.db, s.dialect)
	if err != nil {
		return err
	}
	if err := s.refuseNewer(ctx, p); err != nil {
		return err
	}
	if err := s.up(ctx, p); err != nil {
		return s.failed(fmt.Errorf("migrations: %w", err))
	}
	return s.refuseNewer(ctx, p) // one of a newer release may have been faster
}

// up migrates. Where nothing keeps others from it, they may be in between, and what they did is found done.
func (s *store) up(ctx context.Context, p *goose.Provider) error {
	for attempt := 1; ; attempt++ {
		_, err := p.Up(ctx)
		if err == nil || s.dialect.lock != nil || attempt == maxAttempts {
			return err
		}
		if !pause(ctx, attempt) {
			return err
		}
	}
}

func provider(db *sql.DB, d dialect) (*goose.Provider, error) {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return nil, err
	}
	options := []goose.ProviderOption{goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger())}
	if d.lock != nil {
		locker, err := d.lock()
		if err != nil {
			return nil, fmt.Errorf("migrations: %w", err)
		}
		options = append(options, goose.WithSessionLocker(locker))
	}
	p, err := goose.NewProvider(d.goose, db, files, options...)
	if err != nil {
		return nil, fmt.Errorf("migrations: %w", err)
	}
	return p, nil
}

// refuseNewer refuses tables that this release does not know.
func (s *store) refuseNewer(ctx context.Context, p *goose.Provider) error {
	current, target, err := p.GetVersions(ctx)
	if err != nil {
		return s.failed(fmt.Errorf("migrations: %w", err))
	}
	if current > target {
		return fault.New(fault.Invalid, "tables are of version %d, and this release knows %d", current, target).
			WithHint("use the release that wrote them, or one after it")
	}
	return nil
}
