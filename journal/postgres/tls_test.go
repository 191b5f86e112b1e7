package postgres

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone/internal/test/pgtest"
)

// authority is a CA with its key.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string // its certificate, in PEM
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	cert := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	a := &authority{cert: cert, file: filepath.Join(t.TempDir(), name)}
	certificate, _ := a.issue(t, cert)
	if err := os.WriteFile(a.file, certificate, 0o600); err != nil {
		t.Fatal(err)
	}
	return a
}

// issue signs a certificate, the first time its own, and returns it with its key.
func (a *authority) issue(t *testing.T, cert *x509.Certificate) (certificate, key []byte) {
	t.Helper()
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if a.key == nil {
		a.key = own
	}
	signed, err := x509.CreateCertificate(rand.Reader, cert, a.cert, &own.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(own)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})
}

// A server with a valid certificate is used. A certificate of another CA or for another host is rejected
// at once, with an error that says what to do.
func TestTLS(t *testing.T) {
	s := pgtest.New(t, "fsync=off")
	database, err := url.Parse(s.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	trusted, other := newAuthority(t, "trusted"), newAuthority(t, "other")
	certificate, key := trusted.issue(t, &x509.Certificate{SerialNumber: big.NewInt(2), DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)})
	port := s.Secure(t, certificate, key)
	at := func(host, mode string, ca *authority) string {
		return fmt.Sprintf("postgres://stone@%s:%d/%s?sslmode=%s&sslrootcert=%s", host, port, path.Base(database.Path), mode, url.QueryEscape(ca.file))
	}
	do(t, open(t, at("localhost", "verify-full", trusted), Options{}), stepKey("r", 1))
	for name, address := range map[string]string{
		"other CA": at("localhost", "verify-full", other), "other host": at("127.0.0.1", "verify-full", trusted), "other CA alone": at("127.0.0.1", "verify-ca", other),
	} {
		started := time.Now()
		_, err := Open(t.Context(), address, Options{Retry: time.Hour})
		if err == nil || !strings.Contains(err.Error(), "certificate that cannot be verified: set sslrootcert") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s, after %v: %v", name, time.Since(started), err)
		}
	}
	if _, err := Open(t.Context(), at("127.0.0.1", "disable", trusted), Options{Retry: 1}); err == nil || !strings.Contains(err.Error(), "no encryption") {
		t.Errorf("without TLS: %v", err)
	}
}
