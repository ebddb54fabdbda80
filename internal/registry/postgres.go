package registry

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"zaentrum.io/zae/internal/fault"
)

const (
	// connectTimeout bounds one attempt to connect, unless the address has connect_timeout.
	connectTimeout = 5 * time.Second
	// maxConnections bounds the connections of one process.
	maxConnections = 8
	// strandedAfter is when the server ends the transaction of a process that stopped in the middle of it, whose locks
	// would hold up the others.
	strandedAfter = 30 * time.Second
)

// openPostgres connects to nothing yet. The address may leave out what PostgreSQL's environment says: PGPASSWORD,
// PGPASSFILE, PGSSLMODE and so on.
func openPostgres(address string) (*store, error) {
	config, err := pgx.ParseConfig(address)
	if err != nil { // which holds the address, and with it the password
		return nil, fault.New(fault.Usage, "the address of the registry's database cannot be read").WithHint("%s", databases)
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = connectTimeout
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "zae-api"
	}
	db := stdlib.OpenDB(*config, stdlib.OptionAfterConnect(func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, fmt.Sprintf("SET idle_in_transaction_session_timeout = %d", strandedAfter.Milliseconds()))
		return err
	}))
	db.SetMaxOpenConns(maxConnections)
	db.SetMaxIdleConns(maxConnections / 2)
	db.SetConnMaxIdleTime(5 * time.Minute)
	db.SetConnMaxLifetime(time.Hour)
	name := "postgres://" + net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port))) + "/" + config.Database
	secrets := []string{address}
	if p := config.Password; p != "" {
		secrets = append(secrets, p, url.QueryEscape(p), url.PathEscape(p))
	}
	return &store{db: db, name: name, secrets: secrets, dialect: dialect{
		goose: goose.DialectPostgres,
		lock: func() (lock.SessionLocker, error) {
			// Asked for each second, for as long as a migration may take.
			return lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, uint64(migrationTimeout/time.Second)))
		},
	}}, nil
}
