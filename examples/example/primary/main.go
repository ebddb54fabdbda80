// Command primary is the primary of the example addon: it serves the addon's manifest, its setup status and
// a small console. It shows what the platform expects of a primary and is what tests and demonstrations run;
// it does no work of its own and trusts no header.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Getenv, os.Stderr)
	stop()
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
	default:
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, getenv func(string) string, stderr io.Writer) error {
	var (
		o       Options
		addr    string
		check   string
		migrate bool
	)
	flags := flag.NewFlagSet("primary", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&addr, "addr", ":8080", "`address` to listen on")
	flags.StringVar(&o.Version, "version", "dev", "version the manifest reports")
	flags.StringVar(&o.Service, "service", "example", "name of the addon")
	flags.StringVar(&o.Data, "data", "", "`directory` to keep data in; none when empty")
	flags.BoolVar(&migrate, "migrate", false, "bring the database up to date and exit")
	flags.StringVar(&check, "check", "", "fetch a manifest from this `URL`, check it and exit")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	log := slog.New(slog.NewTextHandler(stderr, nil))
	o.DatabaseURL = getenv("DATABASE_URL")
	o.ConfigKey = getenv("EXAMPLE_CONFIG_KEY")
	switch {
	case migrate:
		return migrateDatabase(o.DatabaseURL, log)
	case check != "":
		return checkManifest(ctx, check, o.Service)
	default:
		return serve(ctx, addr, NewHandler(o), log)
	}
}

// serve answers until ctx ends, then lets requests finish.
func serve(ctx context.Context, addr string, handler http.Handler, log *slog.Logger) error {
	var listen net.ListenConfig
	l, err := listen.Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	srv := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      10 * time.Second,
		IdleTimeout:       time.Minute,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	log.Info("listening", "addr", l.Addr().String())
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := srv.Shutdown(last); err != nil {
		return err
	}
	if err := <-done; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// migrateDatabase stands where an addon would bring its tables up to date. Running it again changes nothing.
func migrateDatabase(address string, log *slog.Logger) error {
	if !validDatabase(address) {
		return errors.New("DATABASE_URL is not a postgres:// address")
	}
	log.Info("the database is up to date")
	return nil
}

// validDatabase tells whether the address can be one. It never says what is wrong with it: it holds a password.
func validDatabase(address string) bool {
	u, err := url.Parse(address)
	return err == nil && (u.Scheme == "postgres" || u.Scheme == "postgresql") && u.Host != ""
}

// checkManifest is what helm test runs: the manifest is there and names the service.
func checkManifest(ctx context.Context, address, service string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", address, resp.Status)
	}
	var m Manifest
	if err := json.NewDecoder(io.LimitReader(resp.Body, 256<<10)).Decode(&m); err != nil {
		return fmt.Errorf("%s is not a manifest", address)
	}
	if m.Service != service {
		return fmt.Errorf("%s names another service than %s", address, service)
	}
	return nil
}
