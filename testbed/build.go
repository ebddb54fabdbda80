package testbed

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Binaries are the paths of the programs of a control plane.
type Binaries struct {
	Etcd              string
	APIServer         string
	ControllerManager string
	Scheduler         string
	Kubectl           string
	Kwok              string
}

// Assets is a directory with the programs that controller-runtime's envtest looks for, under the names it expects: the
// value for KUBEBUILDER_ASSETS. It holds links, and lies beside the programs it was made from.
func (b Binaries) Assets() (string, error) {
	dir := filepath.Join(filepath.Dir(b.APIServer), "assets")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	for name, path := range map[string]string{"etcd": b.Etcd, "kube-apiserver": b.APIServer, "kubectl": b.Kubectl} {
		link := filepath.Join(dir, name)
		if at, err := os.Readlink(link); err == nil && at == path {
			continue
		}
		// Renamed into place: somebody may be starting the old one.
		fresh := fmt.Sprintf("%s.%d", link, os.Getpid())
		if err := errors.Join(os.Symlink(path, fresh), os.Rename(fresh, link)); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// program is one binary: its file name, the package it is built from, and where its path is kept.
type program struct {
	name string
	pkg  string
	path func(*Binaries) *string
}

// module is a directory with a go.mod of its own below the testbed. Each is built with the versions it pins, none of
// which reach another module.
type module struct {
	dir      string // below the testbed's
	require  string // the module path whose version names the build
	duration string // of a cold build on two cores, for people
	ldflags  func(version string) []string
	programs []program
}

func modules() []module {
	return []module{{
		dir: "etcd", require: "go.etcd.io/etcd/server/v3", duration: "half a minute",
		programs: []program{
			{"etcd", "go.etcd.io/etcd/server/v3", func(b *Binaries) *string { return &b.Etcd }},
		},
	}, {
		dir: "kwok", require: "sigs.k8s.io/kwok", duration: "a minute",
		programs: []program{
			{"kwok", "sigs.k8s.io/kwok/cmd/kwok", func(b *Binaries) *string { return &b.Kwok }},
		},
	}, {
		dir: "kubernetes", require: "k8s.io/kubernetes", duration: "six minutes",
		// Clients refuse a server that does not know its version.
		ldflags: func(version string) []string {
			const p = "k8s.io/component-base/version."
			flags := []string{"-X", p + "gitVersion=" + version}
			if f := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3); len(f) == 3 {
				flags = append(flags, "-X", p+"gitMajor="+f[0], "-X", p+"gitMinor="+f[1])
			}
			return flags
		},
		programs: []program{
			{"kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver", func(b *Binaries) *string { return &b.APIServer }},
			{"kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager", func(b *Binaries) *string { return &b.ControllerManager }},
			{"kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler", func(b *Binaries) *string { return &b.Scheduler }},
			{"kubectl", "k8s.io/kubernetes/cmd/kubectl", func(b *Binaries) *string { return &b.Kubectl }},
		},
	}}
}

// Build builds what is missing in the user's cache and returns the paths of all programs. The first build takes
// minutes; progress gets a line before and after each. Several processes may call it at once: one builds, the others
// wait for it.
func Build(ctx context.Context, progress io.Writer) (Binaries, error) {
	var bins Binaries
	sources, err := sourceDir(ctx)
	if err != nil {
		return bins, err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return bins, fmt.Errorf("cache directory: %w", err)
	}
	cache = filepath.Join(cache, "zae-testbed")
	for _, m := range modules() {
		if err := m.build(ctx, filepath.Join(sources, m.dir), cache, &bins, progressTo(progress)); err != nil {
			return bins, fmt.Errorf("build %s: %w", m.dir, err)
		}
	}
	return bins, nil
}

func (m module) build(ctx context.Context, dir, cache string, bins *Binaries, progress progressFunc) error {
	version, err := requiredVersion(filepath.Join(dir, "go.mod"), m.require)
	if err != nil {
		return err
	}
	sums, err := os.ReadFile(filepath.Join(dir, "go.sum"))
	if err != nil {
		return err
	}
	ldflags := []string{"-s", "-w"}
	if m.ldflags != nil {
		ldflags = append(ldflags, m.ldflags(version)...)
	}
	// GOFLAGS of the caller still count, but cannot change what is built.
	flags := []string{"-trimpath", "-buildvcs=false", "-mod=readonly", "-ldflags=" + strings.Join(ldflags, " ")}
	sum := sha256.Sum256(append(sums, strings.Join(flags, "\x00")...))
	key := version + "-" + runtime.GOOS + "-" + runtime.GOARCH + "-" + hex.EncodeToString(sum[:6])
	for _, p := range m.programs {
		*p.path(bins) = filepath.Join(cache, p.name+"-"+key, p.name)
	}
	if len(m.missing(bins)) == 0 {
		return nil
	}

	if err := os.MkdirAll(cache, 0o755); err != nil {
		return err
	}
	unlock, err := lock(ctx, filepath.Join(cache, m.dir+".lock"), func() {
		progress("waiting for another process that builds %s %s", m.dir, version)
	})
	if err != nil {
		return err
	}
	defer unlock()
	missing := m.missing(bins) // another process may have built them meanwhile
	if len(missing) == 0 {
		return nil
	}

	var names, packages []string
	for _, p := range missing {
		names, packages = append(names, p.name), append(packages, p.pkg)
	}
	what := strings.Join(names, ", ") + " " + version
	progress("building %s, about %s, once", what, m.duration)
	start := time.Now()
	out, err := os.MkdirTemp(cache, "build-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(out)
	// One command for all: they share most packages. With one package -o names the file, as a package's name is not
	// always the program's.
	target := out + string(filepath.Separator)
	if len(missing) == 1 {
		target = filepath.Join(out, missing[0].name)
	}
	args := append(append([]string{"build", "-o", target}, flags...), packages...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0", "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
	// Interrupted, the go command ends its compilers and removes its temporary files.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	if output, err := cmd.CombinedOutput(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("go build in %s: %w\n%s", dir, err, bytes.TrimSpace(output))
	}
	for _, p := range missing {
		path := *p.path(bins)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		// A rename, so that nobody ever sees half a program.
		if err := os.Rename(filepath.Join(out, p.name), path); err != nil {
			return err
		}
	}
	progress("built %s in %.0f s", what, time.Since(start).Seconds())
	return nil
}

func (m module) missing(bins *Binaries) []program {
	var missing []program
	for _, p := range m.programs {
		if _, err := os.Stat(*p.path(bins)); err != nil {
			missing = append(missing, p)
		}
	}
	return missing
}

// sourceDir finds the testbed's directory: the modules to build lie below it and are part of no other module, so they
// cannot be embedded.
func sourceDir(ctx context.Context) (string, error) {
	if _, file, _, ok := runtime.Caller(0); ok {
		if dir := filepath.Dir(file); isSourceDir(dir) {
			return dir, nil
		}
	}
	// Built with -trimpath, a program does not know where its sources were.
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "zaentrum.io/zae/testbed")
	cmd.Env = append(os.Environ(), "GOWORK=off")
	out, err := cmd.Output()
	if dir := strings.TrimSpace(string(out)); err == nil && isSourceDir(dir) {
		return dir, nil
	}
	// From the repository's root or anywhere below it.
	for dir, _ := os.Getwd(); dir != ""; dir = parent(dir) {
		for _, d := range []string{dir, filepath.Join(dir, "testbed")} {
			if isSourceDir(d) {
				return d, nil
			}
		}
	}
	return "", errors.New("testbed sources not found; run it inside the repository")
}

func isSourceDir(dir string) bool {
	if dir == "" {
		return false
	}
	for _, m := range modules() {
		if _, err := os.Stat(filepath.Join(dir, m.dir, "go.sum")); err != nil {
			return false
		}
	}
	return true
}

// parent is the directory above dir, or "" at the root.
func parent(dir string) string {
	if up := filepath.Dir(dir); up != dir {
		return up
	}
	return ""
}

// requiredVersion reads the version of one module from a go.mod: the one place where it is kept.
func requiredVersion(gomod, path string) (string, error) {
	data, err := os.ReadFile(gomod)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(data)) {
		f := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
		if len(f) >= 2 && f[0] == path && strings.HasPrefix(f[1], "v") {
			return f[1], nil
		}
	}
	return "", fmt.Errorf("%s: no version of %s", gomod, path)
}

// lock takes an exclusive lock on a file, and calls waiting once when another process holds it. The kernel drops the
// lock of a process that dies.
func lock(ctx context.Context, path string, waiting func()) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for said := false; ; {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if !said {
			waiting()
			said = true
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// tryLock takes the lock, or fails when another process holds it.
func tryLock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, err
	}
	return func() { f.Close() }, nil
}

// progressFunc says one line to whoever follows; several goroutines may call it.
type progressFunc func(format string, args ...any)

func progressTo(w io.Writer) progressFunc {
	var mu sync.Mutex
	return func(format string, args ...any) {
		if w == nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(w, format+"\n", args...)
	}
}
