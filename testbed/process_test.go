package testbed

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// helperEnv makes the test binary a parent with one child that waits to be killed.
const helperEnv = "TESTBED_TEST_PARENT"

func TestMain(m *testing.M) {
	if os.Getenv(helperEnv) != "" {
		s := newSpawner()
		c := &child{spawner: s, path: "/bin/sleep", args: []string{"600"}, log: os.DevNull}
		if err := c.start(context.Background()); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(c.pid())
		select {}
	}
	os.Exit(m.Run())
}

func TestChildrenDieWithTheirParent(t *testing.T) {
	t.Parallel()
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), helperEnv+"=1")
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatalf("no child: %q", line)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	var killed *exec.ExitError
	if err := parent.Wait(); !errors.As(err, &killed) {
		t.Errorf("the parent was not killed: %v", err)
	}
	for range 100 {
		if gone(pid) {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Error("the child outlived its parent")
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
}

// gone says whether a process has ended; a zombie that nobody waits for has.
func gone(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	f := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	return f[0] == "Z"
}

func shell(t *testing.T, script string) *child {
	t.Helper()
	s := newSpawner()
	c := &child{spawner: s, path: "/bin/sh", args: []string{"-c", script}, log: filepath.Join(t.TempDir(), "log")}
	t.Cleanup(func() {
		if err := c.kill(); err != nil {
			t.Error(err)
		}
		s.stop()
	})
	return c
}

func TestStopKillsWhatDoesNotEnd(t *testing.T) {
	t.Parallel()
	c := shell(t, `trap "" TERM; echo ready; while :; do sleep 0.05; done`)
	c.ready = logHas(c.log, "ready")
	must(t, c.start(t.Context()))
	start := time.Now()
	must(t, c.stop(200*time.Millisecond))
	if took := time.Since(start); took < 200*time.Millisecond || took > 5*time.Second {
		t.Errorf("took %s", took)
	}
	if c.running() {
		t.Error("still runs")
	}
	must(t, c.stop(time.Second)) // again
	must(t, c.kill())
}

func TestStopEndsAPausedProcess(t *testing.T) {
	t.Parallel()
	c := shell(t, "exec sleep 600")
	must(t, c.start(t.Context()))
	must(t, c.pause())
	start := time.Now()
	must(t, c.stop(10*time.Second))
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("took %s", took)
	}
	if err := c.pause(); !errors.Is(err, errNotRunning) {
		t.Errorf("got %v", err)
	}
}

func TestAProgramThatEndsEarlyIsAnError(t *testing.T) {
	t.Parallel()
	c := shell(t, `echo "listen tcp 127.0.0.1:1: bind: address already in use" >&2; exit 3`)
	c.ready = func(context.Context) error { return errors.New("not yet") }
	err := c.start(t.Context())
	var exit *exitError
	if !errors.As(err, &exit) || !exit.addressInUse() || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("got %v", err)
	}
}

func TestStartIsGivenUpWithItsContext(t *testing.T) {
	t.Parallel()
	c := shell(t, "exec sleep 600")
	c.ready = func(context.Context) error { return errors.New("not yet") }
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := c.start(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if c.running() {
		t.Error("still runs")
	}
}

func TestStartRefusesADirectoryThatIsNotATestbeds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "precious"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b := &Bed{}
	if err := b.prepare(dir); err == nil {
		t.Error("accepted")
	}
	other := t.TempDir()
	must(t, b.prepare(other))
	if err := (&Bed{}).prepare(other); err == nil {
		t.Error("accepted while another testbed runs in it")
	}
	b.unlock()
	again := &Bed{}
	must(t, again.prepare(other))
	again.unlock()
}

func logHas(path, text string) func(context.Context) error {
	return func(context.Context) error {
		data, _ := os.ReadFile(path)
		if !strings.Contains(string(data), text) {
			return errors.New("not yet")
		}
		return nil
	}
}
