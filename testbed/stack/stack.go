// Package stack runs the product on a testbed, the way a platform runs it: CRDs, a platform resource, the shipped
// roles, one operator and one API, each with its own service account's rights, and the example's primary.
//
// It only drives the product from outside: the zae binary, its HTTP API and the cluster's.
package stack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"zaentrum.io/zae/testbed"
	"zaentrum.io/zae/testbed/registry"
)

// Options say what to run.
type Options struct {
	Bed *testbed.Bed
	// Zae is the path of the zae binary.
	Zae string
	// Namespace is created, and becomes the platform's.
	Namespace string
	// Primary is the path of the example's primary server, from BuildPrimary.
	Primary string
	// OperatorArgs and APIArgs are added to the programs' arguments.
	OperatorArgs, APIArgs []string
	// Gate is put between the operator and the API server when set.
	Gate func(http.Handler) http.Handler
	// APIGate is put between the API and the API server when set.
	APIGate func(http.Handler) http.Handler
	// Progress gets one line per step. May be nil.
	Progress io.Writer
}

// Stack is the running product.
type Stack struct {
	Bed       *testbed.Bed
	Namespace string
	URL       string           // of the API
	Home      string           // a home directory for the command line: configuration and sessions
	Operator  *testbed.Process // the first one
	API       *testbed.Process
	Primary   *testbed.Process
	// MetricsURL is the operator's.
	MetricsURL string
	// Credential is the operator's, as in [Operator].
	Credential string

	options Options
	others  []*testbed.Process // operators that were started besides
}

// Root is the directory of the product's module.
func Root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Dir(filepath.Dir(filepath.Dir(file)))
}

// BuildPrimary builds the example's primary server into dir.
func BuildPrimary(ctx context.Context, dir string) (string, error) {
	out := filepath.Join(dir, "example-primary")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", out, "./examples/example/primary")
	cmd.Dir = Root()
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the example's primary: %w\n%s", err, text)
	}
	return out, nil
}

// BuildZae builds the zae binary into dir, for those who were not given one.
func BuildZae(ctx context.Context, dir string) (string, error) {
	out := filepath.Join(dir, "zae")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", out, "./cmd/zae")
	cmd.Dir = Root()
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build zae: %w\n%s", err, text)
	}
	return out, nil
}

// Start puts the product on the testbed. After an error nothing of it is left running; the namespace stays.
func Start(ctx context.Context, o Options) (_ *Stack, err error) {
	s := &Stack{Bed: o.Bed, Namespace: o.Namespace, options: o}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Stop())
		}
	}()
	if s.Home, err = os.MkdirTemp(o.Bed.Dir, "home-"+o.Namespace+"-"); err != nil {
		return nil, err
	}
	s.say("namespace %s with a Zaentrum resource, CRDs and roles", o.Namespace)
	if err = s.prepare(ctx); err != nil {
		return nil, err
	}
	if err = s.startOperator(ctx); err != nil {
		return nil, err
	}
	if err = s.startAPI(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// Binary is the path of the zae binary.
func (s *Stack) Binary() string { return s.options.Zae }

func (s *Stack) say(format string, args ...any) {
	if s.options.Progress != nil {
		fmt.Fprintf(s.options.Progress, format+"\n", args...)
	}
}

// Stop ends the operator, the API and the primary.
func (s *Stack) Stop() error {
	var errs []error
	for _, p := range append([]*testbed.Process{s.API, s.Operator, s.Primary}, s.others...) {
		if p != nil {
			errs = append(errs, p.Stop())
		}
	}
	return errors.Join(errs...)
}

// Platform is the Zaentrum resource of a namespace.
const Platform = `apiVersion: zaentrum.io/v1alpha1
kind: Zaentrum
metadata:
  name: platform
spec:
  hostname: media.example.org
  identity:
    issuerScheme: https
`

func (s *Stack) prepare(ctx context.Context) error {
	deploy := filepath.Join(Root(), "deploy")
	namespace := "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: " + s.Namespace + "\n"
	for _, step := range []func() error{
		func() error { return s.Apply(ctx, namespace) },
		func() error {
			_, err := s.Kubectl(ctx, "", "apply", "--server-side", "-f", filepath.Join(deploy, "crds"))
			return err
		},
		func() error {
			_, err := s.Kubectl(ctx, "", "wait", "--for=condition=Established", "--timeout=30s",
				"crd/zaentrumaddons.zaentrum.io", "crd/zaentrums.zaentrum.io")
			return err
		},
		func() error { return s.Apply(ctx, Platform) },
		// The media claim belongs to the platform, not to an addon.
		func() error {
			return s.Apply(ctx, "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata:\n  name: media\nspec:\n  accessModes: [ReadWriteMany]\n  resources:\n    requests:\n      storage: 1Gi\n")
		},
		func() error { return s.applyRights(ctx, filepath.Join(deploy, "operator.yaml")) },
		func() error { return s.applyRights(ctx, filepath.Join(deploy, "api.yaml")) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// applyRights applies the service account, role and binding of a shipped file, and nothing that would start pods: the
// programs run as processes here.
func (s *Stack) applyRights(ctx context.Context, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var rights []string
	for _, doc := range strings.Split(string(text), "\n---\n") {
		for _, kind := range []string{"ServiceAccount", "Role", "RoleBinding"} {
			if strings.Contains("\n"+doc, "\nkind: "+kind+"\n") {
				rights = append(rights, doc)
			}
		}
	}
	return s.Apply(ctx, strings.Join(rights, "\n---\n"))
}

// Kubectl runs kubectl as cluster-admin in the stack's namespace.
func (s *Stack) Kubectl(ctx context.Context, stdin string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, s.Bed.Binaries.Kubectl, append([]string{"--kubeconfig", s.Bed.Kubeconfig, "-n", s.Namespace}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, stderr.String())
	}
	return stdout.String(), nil
}

// Apply applies YAML as cluster-admin.
func (s *Stack) Apply(ctx context.Context, yaml string) error {
	_, err := s.Kubectl(ctx, yaml, "apply", "--server-side", "-f", "-")
	return err
}

func (s *Stack) startOperator(ctx context.Context) error {
	s.say("operator, as service account zae-operator")
	o, err := s.runOperator(ctx, OperatorOptions{Name: "zae-operator-" + s.Namespace, Gate: s.options.Gate})
	if err != nil {
		return err
	}
	s.Operator, s.MetricsURL, s.Credential = o.Process, o.MetricsURL, o.Credential
	return nil
}

// OperatorOptions say how one more operator differs from the first.
type OperatorOptions struct {
	// Name is the process'; it must be new.
	Name string
	// Args are added to those of every operator of the stack.
	Args []string
	// Gate is put between this operator and the API server when set.
	Gate func(http.Handler) http.Handler
	// Admin gives it the rights of a cluster-admin, in place of those of the namespace's Role, which go with the namespace.
	Admin bool
}

// Operator is one that runs. It has a token of its own, a cache of its own, and the rights of the others.
type Operator struct {
	*testbed.Process
	MetricsURL string
	// Credential is the id of its token, which the API server's audit log names with each request; empty for an admin.
	Credential string
}

// AnotherOperator starts one more operator, which ends with the stack.
func (s *Stack) AnotherOperator(ctx context.Context, o OperatorOptions) (*Operator, error) {
	operator, err := s.runOperator(ctx, o)
	if err == nil {
		s.others = append(s.others, operator.Process)
	}
	return operator, err
}

func (s *Stack) runOperator(ctx context.Context, o OperatorOptions) (*Operator, error) {
	kubeconfig, credential := s.Bed.Kubeconfig, ""
	if !o.Admin {
		var err error
		if kubeconfig, err = s.Bed.KubeconfigFor(ctx, s.Namespace, "zae-operator"); err != nil {
			return nil, err
		}
		if credential, err = testbed.CredentialID(kubeconfig); err != nil {
			return nil, err
		}
	}
	if o.Gate != nil {
		url, err := s.Bed.ProxyAPIServer("gate-of-"+o.Name, o.Gate)
		if err != nil {
			return nil, err
		}
		if err := testbed.Redirect(kubeconfig, url); err != nil {
			return nil, err
		}
	}
	metrics, err := s.Bed.FreeAddr()
	if err != nil {
		return nil, err
	}
	probes, err := s.Bed.FreeAddr()
	if err != nil {
		return nil, err
	}
	args := []string{
		"serve-operator", "--kubeconfig", kubeconfig, "--watch-namespace", s.Namespace,
		"--cache-dir", s.CacheDir(o.Name),
		"--allow-loopback-registry", s.Bed.Registry,
		"--metrics-addr", metrics, "--probe-addr", probes,
	}
	args = append(append(args, s.options.OperatorArgs...), o.Args...)
	process, err := s.Bed.Run(ctx, testbed.Program{
		Name: o.Name, Path: s.options.Zae, Args: args, Ready: answers("http://" + probes + "/readyz"),
	})
	return &Operator{process, "http://" + metrics + "/metrics", credential}, err
}

// CacheDir is where an operator keeps its charts.
func (s *Stack) CacheDir(operator string) string {
	return filepath.Join(s.Bed.Dir, "charts-"+operator)
}

func (s *Stack) startAPI(ctx context.Context) error {
	kubeconfig, err := s.Bed.KubeconfigFor(ctx, s.Namespace, "zae-api")
	if err != nil {
		return err
	}
	if s.options.APIGate != nil {
		url, err := s.Bed.ProxyAPIServer("gate-of-zae-api-"+s.Namespace, s.options.APIGate)
		if err != nil {
			return err
		}
		if err := testbed.Redirect(kubeconfig, url); err != nil {
			return err
		}
	}
	addr, err := s.Bed.FreeAddr()
	if err != nil {
		return err
	}
	args := []string{
		"serve-api", "--kubeconfig", kubeconfig, "--namespace", s.Namespace, "--listen", addr,
		"--issuer", s.Bed.Issuer, "--database", filepath.Join(s.Bed.Dir, "registry-"+s.Namespace+".db"),
	}
	if s.options.Primary != "" {
		primary, err := s.Bed.FreeAddr()
		if err != nil {
			return err
		}
		if s.Primary, err = s.Bed.Run(ctx, testbed.Program{
			Name: "primary-" + s.Namespace, Path: s.options.Primary, Args: []string{"-addr", primary},
			Ready: answers("http://" + primary + "/.well-known/zaentrum-capability.json"),
		}); err != nil {
			return err
		}
		args = append(args, "--resolve", "example="+primary)
	}
	s.URL = "http://" + addr
	s.say("API at %s, as service account zae-api", s.URL)
	s.API, err = s.Bed.Run(ctx, testbed.Program{
		Name: "zae-api-" + s.Namespace, Path: s.options.Zae, Args: append(args, s.options.APIArgs...),
		Ready: answers(s.URL + "/readyz"),
	})
	return err
}

// answers is a try that succeeds when a URL answers 200.
func answers(url string) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("%s answers %s", url, resp.Status)
		}
		return nil
	}
}

// Env is the environment of a command line on this stack: a home of its own, and nothing of the caller's that would
// change what zae does.
func (s *Stack) Env() []string {
	return []string{"HOME=" + s.Home, "XDG_CONFIG_HOME=" + filepath.Join(s.Home, ".config"), "ZAE_URL=" + s.URL, "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8"}
}

// PushChart packages the chart in a directory of the product's module and pushes it. It answers with the reference to
// install it by, which has no tag, and the archive's digest.
func (s *Stack) PushChart(ctx context.Context, dir, name, version string) (ref, digest string, err error) {
	archive, err := registry.Package(filepath.Join(Root(), dir))
	if err != nil {
		return "", "", err
	}
	return s.PushArchive(ctx, archive, name, version)
}

// PushArchive pushes a chart archive.
func (s *Stack) PushArchive(ctx context.Context, archive []byte, name, version string) (ref, digest string, err error) {
	repository := s.Bed.Registry + "/charts/" + name
	if _, err := registry.Push(ctx, repository+":"+version, archive); err != nil {
		return "", "", err
	}
	return "oci://" + repository, registry.Digest(archive), nil
}
