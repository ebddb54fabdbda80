package testbed

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"

	"k8s.io/client-go/tools/clientcmd"

	"zaentrum.io/zae/testbed/internal/server"
)

// ProxyAPIServer starts a server that passes every request on to the API server through wrap, which may count, delay,
// change or drop it, and returns its URL for [Redirect]. It has the API server's certificate and speaks HTTP/2 as well, so
// that a client sees no difference. It is a part of the Bed with this name.
//
// Where the API server does not answer, the proxy cuts the connection, as the API server's end would.
func (b *Bed) ProxyAPIServer(name string, wrap func(http.Handler) http.Handler) (string, error) {
	target, err := url.Parse(b.APIServer)
	if err != nil {
		return "", err
	}
	ca, err := os.ReadFile(b.CAFile)
	if err != nil {
		return "", err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	certificate, err := tls.LoadX509KeyPair(b.pki.path(serverCert), b.pki.path(serverKey))
	if err != nil {
		return "", err
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport: &http.Transport{
			TLSClientConfig:    &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
			ForceAttemptHTTP2:  true,
			DisableCompression: true,
		},
		FlushInterval: -1, // a watch's events are passed on as they come
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	out, err := b.openLog(name)
	if err != nil {
		return "", err
	}
	proxy.ErrorLog = log.New(out, "", log.LstdFlags)
	s, err := server.ListenTLS("", wrap(proxy), certificate)
	if err != nil {
		return "", err
	}
	b.add(name, inProcess{s})
	return "https://" + s.Addr(), nil
}

// Redirect makes the kubeconfig in a file lead to another URL of the same cluster.
func Redirect(kubeconfig, url string) error {
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		return err
	}
	for _, cluster := range config.Clusters {
		cluster.Server = url
	}
	return clientcmd.WriteToFile(*config, kubeconfig)
}

// CredentialID is what the API server's audit log calls the token in a kubeconfig that [Bed.KubeconfigFor] wrote:
// user.extra["authentication.kubernetes.io/credential-id"]. Each token has another.
func CredentialID(kubeconfig string) (string, error) {
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		return "", err
	}
	for _, user := range config.AuthInfos {
		parts := strings.Split(user.Token, ".")
		if len(parts) != 3 {
			continue
		}
		text, err := base64.RawURLEncoding.DecodeString(parts[1])
		if err != nil {
			return "", fmt.Errorf("%s: token: %w", kubeconfig, err)
		}
		var claims struct {
			ID string `json:"jti"`
		}
		if err := json.Unmarshal(text, &claims); err != nil {
			return "", fmt.Errorf("%s: token: %w", kubeconfig, err)
		}
		return "JTI=" + claims.ID, nil
	}
	return "", errors.New(kubeconfig + " has no token")
}
