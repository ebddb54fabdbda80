// Command demo shows the main job with the real programs on a local control plane: sign in, add a chart, read its
// plan, install it, see it Ready, upgrade it, remove it with its values kept. Only the addon example can register there:
// pods are simulated, and its primary is the one that is served.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"zaentrum.io/zae/testbed"
	"zaentrum.io/zae/testbed/stack"
)

func main() {
	zae := flag.String("zae", "", "path of the zae binary")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := run(ctx, *zae, os.Getenv("KEEP") != "")
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

const namespace = "zaentrum"

// secret is the value of the demo's secret input. It must show up nowhere; the demo checks that.
const secret = "postgres://example:demo-p4ssw0rd@postgres:5432/example"

func run(ctx context.Context, zae string, keep bool) (err error) {
	if zae == "" {
		return errors.New("-zae is missing: run make demo")
	}
	title("A control plane on this machine")
	options := testbed.Full()
	options.Progress = os.Stdout
	bed, err := testbed.Start(ctx, options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bed.Stop()) }()

	title("The product on it: the operator and the API under their own shipped roles")
	primary, err := stack.BuildPrimary(ctx, bed.Dir)
	if err != nil {
		return err
	}
	s, err := stack.Start(ctx, stack.Options{Bed: bed, Zae: zae, Namespace: namespace, Primary: primary, Progress: os.Stdout})
	if err != nil {
		return err
	}
	d := &demo{ctx: ctx, stack: s}
	ref := d.push("1.2.0")
	d.push("1.3.0")

	title("Sign in (device grant; the demo approves the code as the person in the browser would)")
	d.login()

	title("Add: the plan, then the install, until Ready and registered")
	fmt.Println("(the secret input comes from the environment variable DATABASE_URL)")
	d.zae("addon", "add", ref, "--version", "1.2.0", "--set", "worker.replicas=2",
		"--set-secret", "database.url=env:DATABASE_URL", "--yes", "--wait")
	d.zae("addon", "status", "example")
	d.kubectl("get", "zaddon")
	d.kubectl("get", "deploy,job,secret,configmap,pvc,svc", "-l", "zaentrum.io/addon=example")

	title("Upgrade: the plan lists the changes")
	d.zae("addon", "upgrade", "example", "--version", "1.3.0", "--yes", "--wait")
	d.zae("addon", "list")

	if keep && d.err == nil {
		return wait(ctx, s)
	}
	title("Remove, with the values kept")
	d.zae("addon", "remove", "example", "--keep-values", "--yes")
	d.gone()
	if d.err != nil {
		return d.err
	}
	title("Nothing the chart created is left; the kept values Secrets are")
	d.kubectl("get", "deploy,job,svc,configmap,pvc,serviceaccount", "-l", "zaentrum.io/addon=example")
	kept := d.kubectl("get", "secret", "-l", "zaentrum.io/addon=example,zaentrum.io/keep=true", "-o", "custom-columns=KEPT:.metadata.name,OWNERS:.metadata.ownerReferences")
	if d.err == nil && strings.Count(kept, "zaentrum-addon-example-") != 2 {
		d.err = errors.New("the values Secret and the generated one should have been kept")
	}
	if d.err == nil && strings.Contains(d.seen.String(), secret) {
		d.err = errors.New("the secret input was shown")
	}
	if d.err == nil {
		fmt.Println("\ndemo: done")
	}
	return d.err
}

func title(text string) { fmt.Printf("\n== %s\n", text) }

// demo runs commands visibly, until one fails.
type demo struct {
	ctx   context.Context
	stack *stack.Stack
	seen  strings.Builder
	err   error
}

func (d *demo) push(version string) string {
	if d.err != nil {
		return ""
	}
	ref, digest, err := d.stack.PushChart(d.ctx, "examples/example/"+version, "example", version)
	if err != nil {
		d.err = err
		return ""
	}
	fmt.Printf("pushed %s %s  %s\n", ref, version, digest)
	return ref
}

func (d *demo) login() {
	if d.err != nil {
		return
	}
	fmt.Printf("\n$ zae login --url %s\n", d.stack.URL)
	r, err := d.stack.Login(d.ctx, "admin", os.Stdout)
	d.take(r, err)
}

func (d *demo) zae(args ...string) {
	if d.err != nil {
		return
	}
	fmt.Printf("\n$ zae %s\n", strings.Join(args, " "))
	r, err := d.stack.Zae(d.ctx, stack.Call{Args: args, Env: []string{"DATABASE_URL=" + secret}, Echo: os.Stdout})
	d.take(r, err)
}

func (d *demo) take(r stack.Result, err error) {
	d.seen.WriteString(r.Stdout + r.Stderr)
	switch {
	case err != nil:
		d.err = err
	case r.Exit != 0:
		d.err = fmt.Errorf("zae %s: exit %d", strings.Join(r.Args, " "), r.Exit)
	}
}

func (d *demo) kubectl(args ...string) string {
	if d.err != nil {
		return ""
	}
	fmt.Printf("\n$ kubectl -n %s %s\n", d.stack.Namespace, strings.Join(args, " "))
	out, err := d.stack.Kubectl(d.ctx, "", args...)
	if out == "" && err == nil {
		out = "(nothing)\n"
	}
	fmt.Print(out)
	d.err = err
	return out
}

// gone waits for the garbage collector, and fails when something the chart created stays. The collector looks for new
// kinds of resources twice a minute, so in a cluster as young as this one it may come late.
func (d *demo) gone() {
	if d.err != nil {
		return
	}
	fmt.Println("\nwaiting for the garbage collector …")
	deadline := time.Now().Add(90 * time.Second)
	for {
		left, err := d.stack.Kubectl(d.ctx, "", "get", "deploy,job,svc,configmap,pvc,serviceaccount,pod,secret", "-o", "name",
			"-l", "zaentrum.io/addon=example,zaentrum.io/keep!=true")
		if err != nil || left == "" {
			d.err = err
			return
		}
		if time.Now().After(deadline) {
			d.err = fmt.Errorf("still there after 90 s:\n%s", left)
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// wait keeps everything up and says how to go on by hand.
func wait(ctx context.Context, s *stack.Stack) error {
	title("It stays up until Ctrl-C. To go on by hand, in another terminal:")
	for _, e := range s.Env() {
		if strings.HasPrefix(e, "XDG_CONFIG_HOME=") || strings.HasPrefix(e, "ZAE_URL=") {
			fmt.Println("export", e)
		}
	}
	fmt.Println("export KUBECONFIG=" + s.Bed.Kubeconfig)
	fmt.Printf("alias zae=%s\n", s.Binary())
	fmt.Printf("alias kubectl='%s -n %s'\n", s.Bed.Binaries.Kubectl, s.Namespace)
	fmt.Println("registry: " + s.Bed.Registry + "  issuer: " + s.Bed.Issuer + "  logs: " + s.Bed.LogDir)
	fmt.Println("Pods are simulated here, and one primary is served: the example's. Another addon can be planned, installed and")
	fmt.Println("removed, and becomes Ready, but only one called example registers; for any other, leave --wait out.")
	<-ctx.Done()
	return nil
}
