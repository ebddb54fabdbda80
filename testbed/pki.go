package testbed

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// pki is the certificate authority of one Bed and what it signed, as files below one directory. It serves loopback
// addresses for the life of a test and is never reused for anything else.
type pki struct{ dir string }

func (p pki) path(name string) string { return filepath.Join(p.dir, name) }

// The files, beside <name>.crt and <name>.key of each client.
const (
	caCert         = "ca.crt"
	serverCert     = "apiserver.crt"
	serverKey      = "apiserver.key"
	accountKey     = "service-account.key"
	accountPubKey  = "service-account.pub"
	certificateAge = 365 * 24 * time.Hour
)

// clients are the identities of the control plane: user and group as the API server's own roles expect them.
var clients = map[string]pkix.Name{
	"admin":                   {CommonName: "testbed-admin", Organization: []string{"system:masters"}},
	"kube-controller-manager": {CommonName: "system:kube-controller-manager"},
	"kube-scheduler":          {CommonName: "system:kube-scheduler"},
}

// createPKI makes a new authority, the API server's certificate and service account key, and one certificate per client.
func createPKI(dir string) (pki, error) {
	p := pki{dir}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return p, err
	}
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return p, err
	}
	now := time.Now().Add(-time.Minute)
	ca := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "testbed-ca"},
		NotBefore:             now,
		NotAfter:              now.Add(certificateAge),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	der, err := x509.CreateCertificate(rand.Reader, ca, ca, caKey.Public(), caKey)
	if err != nil {
		return p, err
	}
	if err := p.write(caCert, "CERTIFICATE", der); err != nil {
		return p, err
	}

	serial := int64(1)
	issue := func(certFile, keyFile string, cert x509.Certificate) error {
		key, err := p.key(keyFile)
		if err != nil {
			return err
		}
		serial++
		cert.SerialNumber = big.NewInt(serial)
		cert.NotBefore, cert.NotAfter = now, now.Add(certificateAge)
		cert.KeyUsage = x509.KeyUsageDigitalSignature
		der, err := x509.CreateCertificate(rand.Reader, &cert, ca, key.Public(), caKey)
		if err != nil {
			return err
		}
		return p.write(certFile, "CERTIFICATE", der)
	}
	if err := issue(serverCert, serverKey, x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.ParseIP(serviceIP)},
	}); err != nil {
		return p, err
	}
	for name, subject := range clients {
		if err := issue(name+".crt", name+".key", x509.Certificate{
			Subject:     subject,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		}); err != nil {
			return p, err
		}
	}

	key, err := p.key(accountKey)
	if err != nil {
		return p, err
	}
	if der, err = x509.MarshalPKIXPublicKey(key.Public()); err != nil {
		return p, err
	}
	return p, p.write(accountPubKey, "PUBLIC KEY", der)
}

func (p pki) key(file string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return key, p.write(file, "EC PRIVATE KEY", der)
}

func (p pki) write(file, kind string, der []byte) error {
	data := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	if err := os.WriteFile(p.path(file), data, 0o600); err != nil {
		return fmt.Errorf("certificates: %w", err)
	}
	return nil
}
