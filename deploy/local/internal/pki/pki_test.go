package pki

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	certutil "k8s.io/client-go/util/cert"

	"jobpolicy.dev/deploy/local/must"
)

const testNode = "node-of-test"

func ensure(t *testing.T, dir string) Files {
	t.Helper()
	files, err := Ensure(dir, Node{Name: testNode})
	must.Succeed(t, err)
	return files
}

func parse(t *testing.T, path string) *x509.Certificate {
	t.Helper()
	certs, err := certutil.CertsFromFile(path)
	must.Succeed(t, err)
	return certs[0]
}

// verify asks as a TLS peer would: is cert signed by ca, for usage, for host?
// An empty host means that any will do.
func verify(t *testing.T, cert, ca string, usage x509.ExtKeyUsage, host string) error {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(parse(t, ca))
	_, err := parse(t, cert).Verify(x509.VerifyOptions{
		Roots:     roots,
		DNSName:   host,
		KeyUsages: []x509.ExtKeyUsage{usage},
	})
	return err
}

func TestServersAreTrustedByTheirOwnClientsOnly(t *testing.T) {
	f := ensure(t, t.TempDir())
	authorities := []string{f.ClusterCA, f.EtcdCA, f.KubeletCA, f.EngineCA}
	cases := map[string]struct {
		pair  Pair
		ca    string
		hosts []string
	}{
		"API server": {f.APIServer, f.ClusterCA, []string{
			"127.0.0.1", "localhost", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
		}},
		"scheduler and controller manager": {f.Serving, f.ClusterCA, []string{"127.0.0.1", "localhost"}},
		"etcd":                             {f.EtcdServer, f.EtcdCA, []string{"127.0.0.1", "localhost"}},
		"node":                             {f.KubeletServer, f.KubeletCA, []string{"127.0.0.1", testNode}},
		"policy engine":                    {f.EngineServer, f.EngineCA, []string{"127.0.0.1", "::1", "localhost"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, host := range tc.hosts {
				if err := verify(t, tc.pair.Cert, tc.ca, x509.ExtKeyUsageServerAuth, host); err != nil {
					t.Errorf("as %s: %v", host, err)
				}
			}
			if verify(t, tc.pair.Cert, tc.ca, x509.ExtKeyUsageServerAuth, "example.org") == nil {
				t.Error("the certificate answers for a foreign host")
			}
			for _, ca := range authorities {
				if ca != tc.ca && verify(t, tc.pair.Cert, ca, x509.ExtKeyUsageServerAuth, "") == nil {
					t.Errorf("%s vouches for it too", filepath.Base(ca))
				}
			}
		})
	}
}

func TestClientsAreWhoTheySay(t *testing.T) {
	f := ensure(t, t.TempDir())
	authorities := []string{f.ClusterCA, f.EtcdCA, f.KubeletCA, f.EngineCA}
	cases := map[string]struct {
		pair       Pair
		ca         string
		wantUser   string
		wantGroups []string
	}{
		"admin":              {f.Admin, f.ClusterCA, "jobpolicy-local-admin", []string{"system:masters"}},
		"controller manager": {f.ControllerManager, f.ClusterCA, "system:kube-controller-manager", nil},
		"scheduler":          {f.Scheduler, f.ClusterCA, "system:kube-scheduler", nil},
		"node":               {f.Node, f.ClusterCA, "system:node:" + testNode, []string{"system:nodes"}},
		"executor":           {f.Executor, f.ClusterCA, "jobpolicy-executor", nil},
		"etcd's client":      {f.EtcdClient, f.EtcdCA, "kube-apiserver", nil},
		"node's client":      {f.KubeletClient, f.KubeletCA, "kube-apiserver", nil},
		"engine's caller":    {f.EngineClient, f.EngineCA, "jobpolicy-executor", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			subject := parse(t, tc.pair.Cert).Subject
			must.Equal(t, "user", tc.wantUser, subject.CommonName)
			must.Equal(t, "groups", tc.wantGroups, subject.Organization)
			for _, ca := range authorities {
				err := verify(t, tc.pair.Cert, ca, x509.ExtKeyUsageClientAuth, "")
				if trusted := err == nil; trusted != (ca == tc.ca) {
					t.Errorf("trusted by %s: %t", filepath.Base(ca), trusted)
				}
			}
			if verify(t, tc.pair.Cert, tc.ca, x509.ExtKeyUsageServerAuth, "") == nil {
				t.Error("a client's certificate can serve")
			}
		})
	}
}

func TestEverythingIsPrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	ensure(t, dir)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if open := info.Mode().Perm() & 0o077; open != 0 {
			t.Errorf("%s is open to others: %s", d.Name(), info.Mode())
		}
		return nil
	})
	must.Succeed(t, err)
}

func TestEnsureKeepsAuthoritiesAndRenewsTheRest(t *testing.T) {
	dir := t.TempDir()
	f := ensure(t, dir)
	lasting := []string{f.ServiceAccountKey, f.ClusterCA, f.EtcdCA, f.KubeletCA, f.EngineCA}
	before := contents(t, dir)
	ensure(t, dir)
	after := contents(t, dir)

	for path, text := range before {
		same := text == after[path]
		isLasting := strings.Contains(strings.Join(lasting, " "), path) || strings.HasSuffix(path, "-ca.key")
		if same != isLasting {
			t.Errorf("%s unchanged: %t, want %t", filepath.Base(path), same, isLasting)
		}
	}
	if len(before) != len(after) {
		t.Errorf("%d files became %d", len(before), len(after))
	}
}

func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*"))
	must.Succeed(t, err)
	all := map[string]string{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		must.Succeed(t, err)
		all[path] = string(text)
	}
	return all
}

func TestEnsureRepairsOrReportsDamage(t *testing.T) {
	t.Run("an authority without its certificate is made anew", func(t *testing.T) {
		dir := t.TempDir()
		f := ensure(t, dir)
		must.Succeed(t, os.Remove(f.EngineCA))
		ensure(t, dir)
		if err := verify(t, f.EngineServer.Cert, f.EngineCA, x509.ExtKeyUsageServerAuth, "localhost"); err != nil {
			t.Errorf("the new authority does not vouch for the engine: %v", err)
		}
	})
	t.Run("a file that is no key is named", func(t *testing.T) {
		dir := t.TempDir()
		f := ensure(t, dir)
		must.Succeed(t, os.WriteFile(f.EtcdCA, []byte("not a certificate"), 0o600))
		_, err := Ensure(dir, Node{Name: testNode})
		if err == nil || !strings.Contains(err.Error(), f.EtcdCA) {
			t.Errorf("error does not name %s: %v", f.EtcdCA, err)
		}
	})
	t.Run("a directory that cannot be made is an error", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "file")
		must.Succeed(t, os.WriteFile(file, nil, 0o600))
		_, err := Ensure(filepath.Join(file, "pki"), Node{Name: testNode})
		if pathErr := new(fs.PathError); !errors.As(err, &pathErr) {
			t.Errorf("got %v, want a path error", err)
		}
	})
}

func TestServiceAccountKeyIsAPrivateECKey(t *testing.T) {
	f := ensure(t, t.TempDir())
	text, err := os.ReadFile(f.ServiceAccountKey)
	must.Succeed(t, err)
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "EC PRIVATE KEY" {
		t.Fatalf("no PEM block of an EC key in %q", text)
	}
	if _, err := x509.ParseECPrivateKey(block.Bytes); err != nil {
		t.Error(err)
	}
}
