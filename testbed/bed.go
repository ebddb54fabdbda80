// Package testbed starts a real Kubernetes control plane on loopback addresses, with an OCI registry and an OpenID
// provider beside it, and stops it without a trace. The control plane is built from Go modules; only what needs a
// kernel or a network is simulated: nodes, their pods, and volumes (by kwok, with the stages in this package).
//
// It is for tests. It must never listen on anything but loopback, and nothing it creates is a secret: the data store is
// open to every local user, and the OpenID provider gives anybody any identity.
package testbed

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"zaentrum.io/zae/testbed/oidc"
	"zaentrum.io/zae/testbed/registry"
)

// The addresses of the cluster. Nothing answers on any of them.
const (
	serviceCIDR = "10.96.0.0/16"
	serviceIP   = "10.96.0.1"
	podCIDR     = "10.244.0.0/16"
)

// Options say what a Bed consists of. The zero value is a control plane with one node and nothing beside it.
type Options struct {
	// Dir is where data, certificates and logs go. It must be empty, or left by an earlier Bed, whose data is then
	// removed. Empty: a temporary directory that Stop removes.
	Dir string
	// Progress gets one line per step and per long build. May be nil.
	Progress io.Writer
	// Nodes is the number of simulated nodes, each with room for 1000 pods; 0 means one.
	Nodes int
	// Registry starts an OCI registry.
	Registry bool
	// OIDC starts an OpenID provider.
	OIDC bool
	// Identity are the OpenID provider's options.
	Identity oidc.Options
}

// Full are the options of a Bed with everything.
func Full() Options { return Options{Nodes: 1, Registry: true, OIDC: true} }

// Bed is a running testbed. Its fields are set by [Start] and must not be changed.
type Bed struct {
	Dir        string
	LogDir     string
	Kubeconfig string // path of the cluster-admin's
	APIServer  string // https://127.0.0.1:port
	CAFile     string
	AuditLog   string // path; one JSON object per answered request, level Metadata
	Registry   string // host:port, plain http; empty without a registry
	Issuer     string // http://127.0.0.1:port, with a discovery document; empty without a provider
	Binaries   Binaries

	progress  progressFunc
	temporary bool
	unlock    func()
	pki       pki
	spawner   *spawner
	identity  *oidc.Provider

	mu        sync.Mutex
	processes []*Process // in the order they were started
	ports     map[int]bool

	stop    sync.Once
	stopErr error
	admin   *http.Client // of the cluster-admin
}

//go:embed audit-policy.yaml
var auditPolicy []byte

// Start builds what is missing and starts a testbed. It returns when the API server is ready, every node is Ready and
// new namespaces get their default service account. ctx is for the start alone: the testbed runs until Stop, or until
// this process ends, however it ends. After an error nothing is left running.
func Start(ctx context.Context, o Options) (_ *Bed, err error) {
	b := &Bed{progress: progressTo(o.Progress), ports: map[int]bool{}}
	if b.Binaries, err = Build(ctx, o.Progress); err != nil {
		return nil, err
	}
	b.spawner = newSpawner()
	defer func() {
		if err != nil {
			err = errors.Join(err, b.Stop())
		}
	}()
	start := time.Now()
	if err = b.prepare(o.Dir); err != nil {
		return nil, err
	}
	if err = b.startControlPlane(ctx); err != nil {
		return nil, err
	}
	if err = b.startServers(o); err != nil {
		return nil, err
	}
	if err = b.fillCluster(ctx, max(o.Nodes, 1)); err != nil {
		return nil, err
	}
	b.progress("ready after %.1f s", time.Since(start).Seconds())
	return b, nil
}

// marker is a file that says a directory belongs to a testbed, and is locked while it runs.
const marker = "testbed.lock"

func (b *Bed) prepare(dir string) error {
	if dir == "" {
		removeStale()
		tmp, err := os.MkdirTemp("", temporaryPrefix)
		if err != nil {
			return err
		}
		dir, b.temporary = tmp, true
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	ours := slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() == marker })
	if len(entries) > 0 && !ours {
		return fmt.Errorf("directory %s is not empty and not a testbed's", dir)
	}
	b.Dir = dir
	if b.unlock, err = tryLock(filepath.Join(dir, marker)); err != nil {
		return fmt.Errorf("directory %s: a testbed is running in it: %w", dir, err)
	}
	for _, name := range []string{"etcd", "pki", "kubeconfig", "config", "logs"} {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			return err
		}
	}
	b.LogDir = filepath.Join(dir, "logs")
	b.AuditLog = filepath.Join(b.LogDir, "audit.log")
	if b.pki, err = createPKI(filepath.Join(dir, "pki")); err != nil {
		return err
	}
	b.CAFile = b.pki.path(caCert)
	if err := os.WriteFile(b.config("audit-policy.yaml"), auditPolicy, 0o644); err != nil {
		return err
	}
	return b.writeStages(b.config("stages.yaml"))
}

const temporaryPrefix = "zae-testbed-"

// removeStale removes the temporary directories of testbeds that were killed and could not do it.
func removeStale() {
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), temporaryPrefix+"*"))
	for _, dir := range dirs {
		path := filepath.Join(dir, marker)
		// A young one may be about to take its lock.
		if info, err := os.Stat(path); err != nil || time.Since(info.ModTime()) < time.Minute {
			continue
		}
		if unlock, err := tryLock(path); err == nil {
			os.RemoveAll(dir)
			unlock()
		}
	}
}

func (b *Bed) config(name string) string { return filepath.Join(b.Dir, "config", name) }

func (b *Bed) kubeconfig(name string) string { return filepath.Join(b.Dir, "kubeconfig", name) }

func (b *Bed) startControlPlane(ctx context.Context) error {
	etcd := &child{path: b.Binaries.Etcd}
	var etcdURL string
	if err := b.startOnPort(ctx, "etcd", etcd, func(port, peer int) {
		etcdURL = loopbackURL("http", port)
		peerURL := loopbackURL("http", peer)
		etcd.args = []string{
			"--name=testbed",
			"--data-dir=" + filepath.Join(b.Dir, "etcd"),
			"--listen-client-urls=" + etcdURL,
			"--advertise-client-urls=" + etcdURL,
			"--listen-peer-urls=" + peerURL,
			"--initial-advertise-peer-urls=" + peerURL,
			"--initial-cluster=testbed=" + peerURL,
			"--unsafe-no-fsync", // a crash of the machine ends the test anyway
			"--log-level=warn",
		}
		etcd.ready = httpReady(&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, etcdURL+"/readyz")
	}); err != nil {
		return err
	}

	admin, err := b.pki.adminClient()
	if err != nil {
		return err
	}
	b.admin = admin
	api := &child{path: b.Binaries.APIServer}
	if err := b.startOnPort(ctx, "kube-apiserver", api, func(port, _ int) {
		b.APIServer = loopbackURL("https", port)
		api.args = b.apiServerArgs(etcdURL, port)
		api.ready = httpReady(admin, b.APIServer+"/readyz")
	}); err != nil {
		return err
	}

	for name := range clients {
		if err := b.pki.writeKubeconfig(b.kubeconfig(name+".kubeconfig"), b.APIServer, name); err != nil {
			return err
		}
	}
	b.Kubeconfig = b.kubeconfig("admin.kubeconfig")
	controllers := b.kubeconfig("kube-controller-manager.kubeconfig")
	scheduler := b.kubeconfig("kube-scheduler.kubeconfig")
	// None of the three serves anything: what they do shows in the cluster.
	for _, p := range []struct {
		name string
		path string
		args []string
	}{
		{"kube-controller-manager", b.Binaries.ControllerManager, []string{
			"--kubeconfig=" + controllers,
			"--secure-port=0",
			"--leader-elect=false",
			"--use-service-account-credentials=true", // so that each controller has only its own role, as in a real cluster
			"--authentication-skip-lookup=true",
			"--root-ca-file=" + b.CAFile,
			"--service-account-private-key-file=" + b.pki.path(accountKey),
			"--cluster-cidr=" + podCIDR,
			"--service-cluster-ip-range=" + serviceCIDR,
			"--kube-api-qps=200", "--kube-api-burst=400",
		}},
		{"kube-scheduler", b.Binaries.Scheduler, []string{
			"--kubeconfig=" + scheduler,
			"--secure-port=0",
			"--leader-elect=false",
			"--authentication-skip-lookup=true",
			"--kube-api-qps=200", "--kube-api-burst=400",
		}},
		{"kwok", b.Binaries.Kwok, []string{
			"--kubeconfig=" + b.Kubeconfig,
			"--config=" + b.config("stages.yaml"),
			"--manage-all-nodes=true",
			"--node-lease-duration-seconds=40", // without leases a node is NotReady after a minute
			"--cidr=" + podCIDR,
			"--node-ip=" + nodeIP,
		}},
	} {
		if err := b.startProcess(ctx, p.name, &child{path: p.path, args: p.args}); err != nil {
			return err
		}
	}
	return nil
}

func (b *Bed) apiServerArgs(etcdURL string, port int) []string {
	return []string{
		"--etcd-servers=" + etcdURL,
		"--secure-port=" + strconv.Itoa(port),
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		"--endpoint-reconciler-type=none", // the default refuses a loopback address
		"--tls-cert-file=" + b.pki.path(serverCert),
		"--tls-private-key-file=" + b.pki.path(serverKey),
		"--client-ca-file=" + b.CAFile,
		"--service-account-key-file=" + b.pki.path(accountPubKey),
		"--service-account-signing-key-file=" + b.pki.path(accountKey),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-cluster-ip-range=" + serviceCIDR,
		"--authorization-mode=RBAC",
		"--allow-privileged=true", // as real clusters do: refusing such pods is admission's work
		"--audit-policy-file=" + b.config("audit-policy.yaml"),
		"--audit-log-path=" + b.AuditLog,
		"--audit-log-mode=blocking", // a test reads what it has just done
		"--audit-log-maxsize=1024",
		"--shutdown-delay-duration=0s",
	}
}

// startServers starts what runs inside this process.
func (b *Bed) startServers(o Options) error {
	if o.Registry {
		log, err := b.openLog("registry")
		if err != nil {
			return err
		}
		s, err := registry.Serve(context.Background(), registry.Options{Log: log})
		if err != nil {
			return err
		}
		b.add("registry", inProcess{s.Server})
		b.Registry = s.Addr()
	}
	if o.OIDC {
		log, err := b.openLog("oidc")
		if err != nil {
			return err
		}
		if o.Identity.Log == nil {
			o.Identity.Log = log
		}
		p, err := oidc.Serve(context.Background(), o.Identity)
		if err != nil {
			return err
		}
		b.add("oidc", inProcess{p.Server})
		b.identity = p
		b.Issuer = p.Issuer()
	}
	return nil
}

func (b *Bed) logPath(name string) string { return filepath.Join(b.LogDir, name+".log") }

// openLog opens the log of a server in this process. It stays open as long as the process: a request may still be
// ending when the server is stopped.
func (b *Bed) openLog(name string) (io.Writer, error) {
	return os.OpenFile(b.logPath(name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
}

// startOnPort starts a program on two free ports, and on others when those were taken meanwhile.
func (b *Bed) startOnPort(ctx context.Context, name string, c *child, configure func(port, second int)) error {
	for try := 0; ; try++ {
		first, err := b.freePort()
		if err != nil {
			return err
		}
		second, err := b.freePort()
		if err != nil {
			return err
		}
		configure(first, second)
		err = b.startProcess(ctx, name, c)
		var exit *exitError
		if try < 5 && errors.As(err, &exit) && exit.addressInUse() {
			continue
		}
		return err
	}
}

func (b *Bed) startProcess(ctx context.Context, name string, c *child) error {
	c.spawner, c.dir, c.log = b.spawner, b.Dir, b.logPath(name)
	start := time.Now()
	if err := c.start(ctx); err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	b.add(name, c)
	if c.ready != nil {
		b.progress("%s serves after %.1f s", name, time.Since(start).Seconds())
	} else {
		b.progress("%s started", name)
	}
	return nil
}

func (b *Bed) add(name string, p part) *Process {
	b.mu.Lock()
	defer b.mu.Unlock()
	process := &Process{name: name, log: b.logPath(name), part: p}
	b.processes = append(b.processes, process)
	return process
}

// Program is a program that runs beside the control plane: what is under test.
type Program struct {
	Name string // for [Bed.Process] and the log file
	Path string
	Args []string
	Env  []string // beside this process' own
	Dir  string   // empty: the Bed's
	// Ready is tried until it returns nil. Nil: the program is ready once started.
	Ready func(context.Context) error
}

// Run starts a program as a part of the Bed: it ends before the control plane does, and never outlives this process.
// It returns once the program is ready; ctx is for that alone. The name must not be that of a running part.
func (b *Bed) Run(ctx context.Context, p Program) (*Process, error) {
	if old := b.Process(p.Name); old != nil && old.Running() || p.Name == "" || p.Name != filepath.Base(p.Name) {
		return nil, fmt.Errorf("run %q: the name is taken or not a name", p.Name)
	}
	c := &child{spawner: b.spawner, path: p.Path, args: p.Args, env: p.Env, dir: p.Dir, log: b.logPath(p.Name), ready: p.Ready}
	if c.dir == "" {
		c.dir = b.Dir
	}
	if err := c.start(ctx); err != nil {
		return nil, fmt.Errorf("run %s: %w", p.Name, err)
	}
	b.mu.Lock()
	b.processes = slices.DeleteFunc(b.processes, func(old *Process) bool { return old.name == p.Name })
	b.mu.Unlock()
	return b.add(p.Name, c), nil
}

// Process is one part by its name: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kwok, registry or
// oidc. It is nil for a part this Bed does not have.
func (b *Bed) Process(name string) *Process {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.processes {
		if p.name == name {
			return p
		}
	}
	return nil
}

// Processes are all parts, in the order they were started.
func (b *Bed) Processes() []*Process {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.processes)
}

// Stop ends everything in reverse order, kills what has not ended after 10 seconds, waits for all of it, and removes
// a temporary directory. It may be called more than once; every call returns the first one's result.
func (b *Bed) Stop() error {
	b.stop.Do(func() { b.stopErr = b.stopAll() })
	return b.stopErr
}

func (b *Bed) stopAll() error {
	var errs []error
	for _, p := range slices.Backward(b.Processes()) {
		errs = append(errs, p.Stop())
	}
	b.spawner.stop()
	if b.admin != nil {
		b.admin.CloseIdleConnections()
	}
	if b.unlock != nil {
		b.unlock()
	}
	if b.temporary && b.Dir != "" {
		errs = append(errs, os.RemoveAll(b.Dir))
	}
	b.progress("stopped")
	return errors.Join(errs...)
}

// Token is an access token of a user as the provider would issue it to a client.
func (b *Bed) Token(user, clientID string) (string, error) {
	if b.identity == nil {
		return "", errNoProvider
	}
	return b.identity.Token(user, clientID)
}

// ApproveDevice does what a user does in the browser: it approves the device that showed userCode.
func (b *Bed) ApproveDevice(_ context.Context, userCode, user string) error {
	if b.identity == nil {
		return errNoProvider
	}
	return b.identity.ApproveDevice(userCode, user)
}

// Identity is the OpenID provider, or nil without one.
func (b *Bed) Identity() *oidc.Provider { return b.identity }

var errNoProvider = errors.New("the testbed has no OpenID provider")

// FreeAddr is a loopback address with a port that nobody listens on and that the kernel gives to no outgoing connection:
// a program that is restarted finds it free again.
func (b *Bed) FreeAddr() (string, error) {
	port, err := b.freePort()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), err
}

// freePort chooses a port no other part of this Bed was given. It comes from below the range the kernel takes the ports
// of outgoing connections from: a part that is restarted finds its port free.
func (b *Bed) freePort() (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for range 100 {
		port := 20000 + rand.IntN(10000)
		if b.ports[port] {
			continue
		}
		ln, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			continue
		}
		ln.Close()
		b.ports[port] = true
		return port, nil
	}
	return 0, errors.New("no free port")
}

func loopbackURL(scheme string, port int) string {
	return scheme + "://127.0.0.1:" + strconv.Itoa(port)
}

// httpReady asks a health endpoint once.
func httpReady(client *http.Client, url string) func(context.Context) error {
	return func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s: %s", url, resp.Status, strings.TrimSpace(string(body)))
		}
		return nil
	}
}
