// Command testbed starts a local Kubernetes control plane with an OCI registry and an OpenID provider, for tests and
// for trying things out. It listens on loopback only, and nothing in it is safe.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"zaentrum.io/zae/testbed"
	"zaentrum.io/zae/testbed/oidc"
	"zaentrum.io/zae/testbed/registry"
)

const usage = `usage:
  testbed build                                    build what a testbed consists of, once
  testbed assets                                   print the directory for KUBEBUILDER_ASSETS; builds what is missing
  testbed up [--dir D] [--env-file F] [--nodes N]  run a testbed until interrupted
  testbed approve USER_CODE --issuer URL [--user admin]
  testbed token --issuer URL [--user admin] [--client zae]
  testbed kubeconfig --dir D --namespace N --service-account S -o FILE
  testbed package DIR OUT.tgz                      make a chart archive, the same bytes for the same files
  testbed push CHART.tgz host:port/repo:tag        push a chart archive

The issuer is also taken from TESTBED_ISSUER, the directory from TESTBED_DIR: see the file of --env-file.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case err == nil:
	case errors.Is(err, errUsage):
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, "testbed:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("usage")

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) == 0 {
		return errUsage
	}
	command, ok := map[string]func(context.Context, []string, io.Writer, io.Writer) error{
		"build":      build,
		"assets":     assets,
		"up":         up,
		"approve":    approve,
		"token":      token,
		"kubeconfig": kubeconfig,
		"package":    packageChart,
		"push":       push,
	}[args[0]]
	if !ok {
		return errUsage
	}
	return command(ctx, args[1:], stdout, stderr)
}

// parse reads flags wherever they stand and returns the other arguments, which have to be n.
func parse(fs *flag.FlagSet, args []string, n int) ([]string, error) {
	var rest []string
	for {
		if err := fs.Parse(args); err != nil {
			return nil, flag.ErrHelp // the flag set has said why
		}
		if fs.NArg() == 0 {
			break
		}
		rest, args = append(rest, fs.Arg(0)), fs.Args()[1:]
	}
	if len(rest) != n {
		return nil, errUsage
	}
	return rest, nil
}

func assets(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) > 0 {
		return errUsage
	}
	binaries, err := testbed.Build(ctx, stderr)
	if err != nil {
		return err
	}
	dir, err := binaries.Assets()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(stdout, dir)
	return err
}

func build(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if _, err := parse(flag.NewFlagSet("build", flag.ContinueOnError), args, 0); err != nil {
		return err
	}
	b, err := testbed.Build(ctx, stderr)
	if err != nil {
		return err
	}
	for _, path := range []string{b.Etcd, b.APIServer, b.ControllerManager, b.Scheduler, b.Kubectl, b.Kwok} {
		fmt.Fprintln(stdout, path)
	}
	return nil
}

func up(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	fs := flag.NewFlagSet("up", flag.ContinueOnError)
	dir := fs.String("dir", "", "directory for data and logs; default: a temporary one, removed in the end")
	envFile := fs.String("env-file", "", "file to write with where everything is, for a shell to read")
	nodes := fs.Int("nodes", 1, "number of simulated nodes")
	if _, err := parse(fs, args, 0); err != nil {
		return err
	}
	o := testbed.Full()
	o.Dir, o.Nodes, o.Progress = *dir, *nodes, stdout
	b, err := testbed.Start(ctx, o)
	if err != nil {
		return err
	}
	err = func() error {
		env := environment(b)
		for _, e := range env {
			fmt.Fprintf(stdout, "  %s=%s\n", e[0], e[1])
		}
		if *envFile != "" {
			if err := writeEnv(*envFile, env); err != nil {
				return err
			}
			defer os.Remove(*envFile) // what it names is gone
		}
		fmt.Fprintln(stdout, "testbed is up")
		<-ctx.Done()
		fmt.Fprintln(stdout, "stopping")
		return nil
	}()
	return errors.Join(err, b.Stop())
}

func environment(b *testbed.Bed) [][2]string {
	return [][2]string{
		{"KUBECONFIG", b.Kubeconfig},
		{"TESTBED_API_SERVER", b.APIServer},
		{"TESTBED_REGISTRY", b.Registry},
		{"TESTBED_ISSUER", b.Issuer},
		{"TESTBED_AUDIT_LOG", b.AuditLog},
		{"TESTBED_DIR", b.Dir},
		{"TESTBED_LOGS", b.LogDir},
		{"KUBECTL", b.Binaries.Kubectl},
	}
}

// writeEnv writes the file in one step: a script may wait for it to appear.
func writeEnv(path string, env [][2]string) error {
	var s strings.Builder
	for _, e := range env {
		fmt.Fprintf(&s, "%s=%s\n", e[0], shellQuote(e[1]))
	}
	tmp := path + ".new"
	if err := os.WriteFile(tmp, []byte(s.String()), 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}

// shellQuote leaves plain words alone: other readers of the file know no quotes.
func shellQuote(s string) string {
	if strings.ContainsAny(s, " \t\n'\"$`\\*?[]{}()<>|&;#~!") {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	return s
}

func approve(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	fs := flag.NewFlagSet("approve", flag.ContinueOnError)
	issuer := fs.String("issuer", os.Getenv("TESTBED_ISSUER"), "issuer of the provider")
	user := fs.String("user", "admin", "who approves")
	rest, err := parse(fs, args, 1)
	if err != nil {
		return err
	}
	if *issuer == "" {
		return errors.New("--issuer is missing")
	}
	form := url.Values{"user_code": {rest[0]}, "user": {*user}, "action": {"approve"}}
	if _, err := oidc.PostForm(ctx, *issuer, oidc.TestbedDevicePath, form); err != nil {
		return fmt.Errorf("approve %s: %w", rest[0], err)
	}
	fmt.Fprintf(stdout, "approved as %s\n", *user)
	return nil
}

func token(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	fs := flag.NewFlagSet("token", flag.ContinueOnError)
	issuer := fs.String("issuer", os.Getenv("TESTBED_ISSUER"), "issuer of the provider")
	user := fs.String("user", "admin", "whose token; empty with a confidential client: its service account")
	client := fs.String("client", "zae", "client it is issued to")
	if _, err := parse(fs, args, 0); err != nil {
		return err
	}
	if *issuer == "" {
		return errors.New("--issuer is missing")
	}
	t, err := oidc.PostForm(ctx, *issuer, oidc.TestbedTokenPath, url.Values{"user": {*user}, "client": {*client}})
	if err != nil {
		return err
	}
	fmt.Fprintln(stdout, t)
	return nil
}

func kubeconfig(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	fs := flag.NewFlagSet("kubeconfig", flag.ContinueOnError)
	dir := fs.String("dir", os.Getenv("TESTBED_DIR"), "directory of the testbed")
	namespace := fs.String("namespace", "default", "namespace of the service account")
	account := fs.String("service-account", "", "the service account")
	out := fs.String("o", "", "file to write")
	if _, err := parse(fs, args, 0); err != nil {
		return err
	}
	if *dir == "" || *account == "" || *out == "" {
		return errUsage
	}
	return testbed.WriteKubeconfigFor(ctx, testbed.AdminKubeconfig(*dir), *namespace, *account, *out)
}

func packageChart(_ context.Context, args []string, stdout, stderr io.Writer) error {
	rest, err := parse(flag.NewFlagSet("package", flag.ContinueOnError), args, 2)
	if err != nil {
		return err
	}
	archive, err := registry.Package(rest[0])
	if err != nil {
		return err
	}
	if err := os.WriteFile(rest[1], archive, 0o644); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%s %s\n", filepath.Base(rest[1]), registry.Digest(archive))
	return nil
}

func push(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	rest, err := parse(flag.NewFlagSet("push", flag.ContinueOnError), args, 2)
	if err != nil {
		return err
	}
	archive, err := os.ReadFile(rest[0])
	if err != nil {
		return err
	}
	manifest, err := registry.Push(ctx, rest[1], archive)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "manifest %s\narchive %s\n", manifest, registry.Digest(archive))
	return nil
}
