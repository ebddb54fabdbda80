package stack

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"strings"
	"sync"
)

// Result is what a run of the command line left.
type Result struct {
	Args           []string
	Exit           int
	Stdout, Stderr string
}

// String is the whole run, for failure messages.
func (r Result) String() string {
	return fmt.Sprintf("zae %s\nexit %d\n--- stdout\n%s--- stderr\n%s", strings.Join(r.Args, " "), r.Exit, r.Stdout, r.Stderr)
}

// Call is one run of the command line.
type Call struct {
	Args  []string
	Env   []string // added to the stack's
	Stdin string
	// Echo, when set, gets stdout and stderr as they come.
	Echo io.Writer
}

// Zae runs the command line without a terminal, as a script does. An error means that it could not be run.
func (s *Stack) Zae(ctx context.Context, c Call) (Result, error) {
	cmd := exec.CommandContext(ctx, s.options.Zae, c.Args...)
	cmd.Env = append(s.Env(), c.Env...)
	cmd.Stdin = strings.NewReader(c.Stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if c.Echo != nil {
		both := &locked{w: c.Echo}
		cmd.Stdout, cmd.Stderr = io.MultiWriter(&stdout, both), io.MultiWriter(&stderr, both)
	}
	err := cmd.Run()
	r := Result{Args: c.Args, Stdout: stdout.String(), Stderr: stderr.String(), Exit: cmd.ProcessState.ExitCode()}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return r, err
	}
	return r, nil
}

type locked struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

var userCode = regexp.MustCompile(`\b[A-Z0-9]{4}-[A-Z0-9]{4}\b`)

// Login signs a user in by the device grant: it runs zae login, reads the code that zae shows, and approves it as the
// person would in a browser.
func (s *Stack) Login(ctx context.Context, user string, echo io.Writer) (Result, error) {
	args := []string{"login", "--device", "--url", s.URL}
	cmd := exec.CommandContext(ctx, s.options.Zae, args...)
	cmd.Env = s.Env()
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	pipe, err := cmd.StderrPipe()
	if err != nil {
		return Result{}, err
	}
	if err := cmd.Start(); err != nil {
		return Result{}, err
	}
	var stderr strings.Builder
	approved := false
	var approval error
	lines := bufio.NewScanner(pipe)
	for lines.Scan() {
		fmt.Fprintln(&stderr, lines.Text())
		if echo != nil {
			fmt.Fprintln(echo, lines.Text())
		}
		if code := userCode.FindString(lines.Text()); code != "" && !approved {
			approved = true
			if approval = s.Bed.ApproveDevice(ctx, code, user); approval != nil {
				_ = cmd.Process.Kill() // it would wait for the approval until the code expires
			}
		}
	}
	err = cmd.Wait()
	if echo != nil && stdout.Len() > 0 {
		fmt.Fprint(echo, stdout.String())
	}
	r := Result{Args: args, Stdout: stdout.String(), Stderr: stderr.String(), Exit: cmd.ProcessState.ExitCode()}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return r, err
	}
	return r, approval
}
