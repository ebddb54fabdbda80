package testbed

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// tokenSeconds is how long a service account's token in a kubeconfig holds.
const tokenSeconds = 24 * 60 * 60

// writeKubeconfig writes a file for one of the control plane's identities. Certificates are in the file, so that it can
// be copied.
func (p pki) writeKubeconfig(path, apiServer, name string) error {
	ca, err := os.ReadFile(p.path(caCert))
	if err != nil {
		return err
	}
	cert, err := os.ReadFile(p.path(name + ".crt"))
	if err != nil {
		return err
	}
	key, err := os.ReadFile(p.path(name + ".key"))
	if err != nil {
		return err
	}
	return clientcmd.WriteToFile(*oneUser(name, "default",
		&clientcmdapi.Cluster{Server: apiServer, CertificateAuthorityData: ca},
		&clientcmdapi.AuthInfo{ClientCertificateData: cert, ClientKeyData: key},
	), path)
}

func oneUser(user, namespace string, cluster *clientcmdapi.Cluster, auth *clientcmdapi.AuthInfo) *clientcmdapi.Config {
	config := clientcmdapi.NewConfig()
	config.Clusters["testbed"] = cluster
	config.AuthInfos[user] = auth
	config.Contexts["testbed"] = &clientcmdapi.Context{Cluster: "testbed", AuthInfo: user, Namespace: namespace}
	config.CurrentContext = "testbed"
	return config
}

// adminClient is an HTTP client with the cluster-admin's certificate.
func (p pki) adminClient() (*http.Client, error) {
	ca, err := os.ReadFile(p.path(caCert))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	cert, err := tls.LoadX509KeyPair(p.path("admin.crt"), p.path("admin.key"))
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{cert}},
		ForceAttemptHTTP2: true,
	}}, nil
}

// RestConfig is the cluster-admin's client configuration. Every call returns a new one.
func (b *Bed) RestConfig() (*rest.Config, error) {
	return clientcmd.BuildConfigFromFlags("", b.Kubeconfig)
}

// KubeconfigFor writes a kubeconfig with a token of a ServiceAccount, good for 24 hours, and returns its path. The
// ServiceAccount must exist; nothing is created in the cluster. Each call writes a new file.
func (b *Bed) KubeconfigFor(ctx context.Context, namespace, serviceAccount string) (path string, err error) {
	f, err := os.CreateTemp(filepath.Dir(b.Kubeconfig), namespace+"-"+serviceAccount+"-*.kubeconfig")
	if err != nil {
		return "", err
	}
	f.Close()
	if err := WriteKubeconfigFor(ctx, b.Kubeconfig, namespace, serviceAccount, f.Name()); err != nil {
		os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}

// AdminKubeconfig is the path of the cluster-admin's kubeconfig of the testbed that runs in dir.
func AdminKubeconfig(dir string) string { return filepath.Join(dir, "kubeconfig", "admin.kubeconfig") }

// WriteKubeconfigFor does what [Bed.KubeconfigFor] does, for a testbed another process started: it needs only the path
// of an admin's kubeconfig.
func WriteKubeconfigFor(ctx context.Context, adminKubeconfig, namespace, serviceAccount, path string) error {
	config, err := clientcmd.BuildConfigFromFlags("", adminKubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	seconds := int64(tokenSeconds)
	token, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, serviceAccount, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("token of service account %s/%s: %w", namespace, serviceAccount, err)
	}
	admin, err := clientcmd.LoadFromFile(adminKubeconfig)
	if err != nil {
		return err
	}
	return clientcmd.WriteToFile(*oneUser(serviceAccount, namespace,
		admin.Clusters[admin.Contexts[admin.CurrentContext].Cluster],
		&clientcmdapi.AuthInfo{Token: token.Status.Token},
	), path)
}
