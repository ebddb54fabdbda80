package registry

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"zaentrum.io/zae/internal/fault"
	"zaentrum.io/zae/internal/postgrestest"
	"zaentrum.io/zae/internal/registry/capability"
)

// fill registers addons of both kinds with rows of every kind, and adds an app by hand and a failure.
func fill(t *testing.T, s Store) {
	t.Helper()
	for _, text := range []string{
		`{"service":"example","version":"4.1.0","ui":{"app":{"title":"Exämple \"one\"","icon":"puzzle"},
			"space":{"key":"media","title":"Media","ord":3},"tiles":[{"key":"one","target":"#/one","ord":-2},{"key":"two"}],
			"slots":[{"key":"row","slot":"title.actions","kind":"link","url":"/go","ord":9}]},
			"components":[{"name":"web","workload":"example","role":"primary"},
			{"name":"worker","workload":"example-worker","role":"required","topics":["a","b"],"summary":"works"}]}`,
		`{"service":"byaddress","ui":{"console":true}}`,
	} {
		m, err := capability.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		source := SourceChart
		if m.Service == "byaddress" {
			source = SourceAddress
		}
		err = s.Register(t.Context(), Registration{
			Source: source, Chart: Chart{Ref: "oci://x/y", Version: "1"}, Manifest: m,
			Place: capability.Place{ProxyURL: "http://" + m.Service, Workload: m.Service, PublicOrigin: "https://media.example.org"},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	err := errors.Join(s.PutApp(t.Context(), capability.App{Key: "byhand", ProxyURL: "http://x"}),
		s.Fail(t.Context(), "never", "unreachable", time.Date(2031, 5, 4, 12, 0, 0, 0, time.UTC)))
	if err != nil {
		t.Fatal(err)
	}
}

// content is every row of every table, as text.
func content(t *testing.T, s Store) string {
	t.Helper()
	var lines []string
	for _, table := range tables {
		rows, err := s.(*store).db.QueryContext(t.Context(), "SELECT * FROM "+table)
		lines = append(lines, rowTexts(t, table, rows, err)...)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// rowTexts are the rows of a query, each as a line.
func rowTexts(t *testing.T, name string, rows *sql.Rows, err error) (lines []string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	values, into := make([]any, len(columns)), make([]any, len(columns))
	for i := range into {
		into[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		line := name
		for _, v := range values {
			line += fmt.Sprintf("|%v", v)
		}
		lines = append(lines, strings.TrimPrefix(line, "|"))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return lines
}

func TestACopyHasEveryRowAndGoesBetweenTheDatabases(t *testing.T) {
	each(t, func(t *testing.T, from string) {
		each(t, func(t *testing.T, to string) {
			source, err := Open(t.Context(), from)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = source.Close() }() // in use while it is copied
			if there, err := source.Addons(t.Context()); err != nil || len(there) == 0 {
				fill(t, source)
			}
			rows, err := Copy(t.Context(), from, to)
			if err != nil {
				t.Fatal(err)
			}
			target, err := Open(t.Context(), to)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = target.Close() }()
			want, got := content(t, source), content(t, target)
			if want != got || rows != strings.Count(want, "\n")+1 || rows < 12 {
				t.Errorf("%d rows:\n%s\nwant:\n%s", rows, got, want)
			}
			// The copy can be gone on with.
			if _, err := target.Remove(t.Context(), "example", SourceChart); err != nil {
				t.Error(err)
			}
			// A second copy would mix two registries.
			before := content(t, target)
			if _, err := Copy(t.Context(), from, to); fault.CodeOf(err) != fault.Usage || !strings.Contains(err.Error(), "is not empty") {
				t.Errorf("got %v", err)
			}
			if content(t, target) != before {
				t.Error("the refused copy wrote")
			}
		})
	})
}

func TestNothingIsCopiedFromWhatIsNoRegistryOfThisRelease(t *testing.T) {
	to := filepath.Join(t.TempDir(), "to.db")
	missing := filepath.Join(t.TempDir(), "missing.db")
	if _, err := Copy(t.Context(), missing, to); fault.CodeOf(err) != fault.Usage || !strings.Contains(err.Error(), missing) {
		t.Errorf("got %v", err)
	}
	each(t, func(t *testing.T, from string) {
		if !strings.Contains(from, "://") {
			if err := os.WriteFile(from, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, err := Copy(t.Context(), from, to)
		if fault.CodeOf(err) != fault.Invalid || !strings.Contains(err.Error(), "tables are of version 0") || strings.Contains(err.Error(), postgrestest.Password) {
			t.Errorf("got %v", err)
		}
	})
	for _, path := range []string{missing, to} {
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s was made", path)
		}
	}
}

func TestACopyKnowsEveryTable(t *testing.T) {
	s, err := Open(t.Context(), InMemory)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	rows, err := s.(*store).db.QueryContext(t.Context(), "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name <> 'goose_db_version'")
	there := rowTexts(t, "", rows, err)
	want := slices.Clone(tables)
	slices.Sort(there)
	slices.Sort(want)
	if !slices.Equal(there, want) {
		t.Errorf("tables %v, and copied are %v", there, want)
	}
}
