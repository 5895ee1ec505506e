package issuer

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"pgregory.net/rapid"

	"jobpolicy.dev/services/internal/testenv"
)

const (
	authorityLife = 1000 * time.Hour
	leafLife      = 100 * time.Hour
	propagation   = 10 * time.Minute
)

var (
	authoritySecret = types.NamespacedName{Namespace: "sys", Name: "authority"}
	server          = Leaf{Secret: types.NamespacedName{Namespace: "sys", Name: "engine-tls"}, CommonName: "engine", DNSNames: []string{"engine.sys.svc"}}
	client          = Leaf{Secret: types.NamespacedName{Namespace: "sys", Name: "executor-tls"}, CommonName: "executor"}
	elsewhere       = Leaf{Secret: types.NamespacedName{Namespace: "queueing", Name: "client"}, CommonName: "queueing"}
)

// A cluster is an API with the Secrets, a clock, and an issuer that looks when told.
type cluster struct {
	*fake.Clientset
	now time.Time
	// failing, while above 0, is how many writes go through until the next fails.
	failing int
	issuer  *Issuer
}

var errLost = errors.New("the answer is lost")

// A tester is a test, also one of package rapid.
type tester interface {
	Fatal(...any)
	Helper()
}

func newCluster(t tester, secrets ...types.NamespacedName) *cluster {
	t.Helper()
	var objects []runtime.Object
	for _, name := range secrets {
		objects = append(objects, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}})
	}
	// Nothing here reads field managers, and NewClientset takes most of the time of these tests to keep them.
	c := &cluster{Clientset: fake.NewSimpleClientset(objects...), now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	c.PrependReactor("update", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		if c.failing--; c.failing == 0 {
			return true, nil, errLost
		}
		return false, nil, nil
	})
	var err error
	c.issuer, err = New(Config{
		Client: c.CoreV1(), Authority: authoritySecret, Leaves: []Leaf{server, client, elsewhere},
		AuthorityDuration: authorityLife, LeafDuration: leafLife, Propagation: propagation,
		Registerer: prometheus.NewRegistry(), Logger: (&testenv.Log{}).Logger(), Now: func() time.Time { return c.now },
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// newSynced has all Secrets, and they are filled.
func newSynced(t tester) *cluster {
	t.Helper()
	c := newCluster(t, authoritySecret, server.Secret, client.Secret, elsewhere.Secret)
	c.sync(t)
	return c
}

func (c *cluster) sync(t tester) {
	t.Helper()
	if err := c.issuer.Sync(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) data(t tester, name types.NamespacedName) map[string][]byte {
	secret, err := c.CoreV1().Secrets(name.Namespace).Get(context.Background(), name.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return secret.Data
}

// put replaces a Secret, as somebody else than the issuer.
func (c *cluster) put(t tester, secret *corev1.Secret) {
	t.Helper()
	if err := c.Tracker().Update(corev1.SchemeGroupVersion.WithResource("secrets"), secret, secret.Namespace); err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) annotate(t tester, text string) {
	secrets := c.CoreV1().Secrets(authoritySecret.Namespace)
	secret, err := secrets.Get(context.Background(), authoritySecret.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	secret.Annotations = map[string]string{RotateAnnotation: text}
	c.put(t, secret)
}

// accepts reports why one with the bundle would refuse the certificate at the time.
func accepts(bundle, cert map[string][]byte, usage x509.ExtKeyUsage, name string, now time.Time) error {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(bundle[bundleKey])
	leaf := parsePair(cert[certKey], cert[keyKey])
	if leaf == nil {
		return errors.New("no certificate")
	}
	_, err := leaf.cert.Verify(x509.VerifyOptions{Roots: pool, CurrentTime: now, DNSName: name, KeyUsages: []x509.ExtKeyUsage{usage}})
	return err
}

// handshake reports why engine and caller would refuse each other.
func handshake(engine, caller map[string][]byte, now time.Time) error {
	return errors.Join(
		accepts(caller, engine, x509.ExtKeyUsageServerAuth, "engine.sys.svc", now),
		accepts(engine, caller, x509.ExtKeyUsageClientAuth, "", now),
	)
}

func TestEmptySecretsAreFilledAtOnce(t *testing.T) {
	c := newSynced(t)
	for _, caller := range []Leaf{client, elsewhere} {
		if err := handshake(c.data(t, server.Secret), c.data(t, caller.Secret), c.now); err != nil {
			t.Errorf("%s: %v", caller.CommonName, err)
		}
	}
	if c.data(t, client.Secret)[certKey] == nil || strings.Contains(string(c.data(t, client.Secret)[keyKey]), "next") {
		t.Error("no certificate")
	}
	before := len(c.Actions())
	c.sync(t)
	for _, action := range c.Actions()[before:] {
		if action.GetVerb() != "get" {
			t.Errorf("nothing was due, and it did %v", action)
		}
	}
}

func TestALeafIsRenewedInTime(t *testing.T) {
	c := newSynced(t)
	before := parsePair(c.data(t, server.Secret)[certKey], c.data(t, server.Secret)[keyKey])
	c.now = renewalTime(before.cert).Add(-time.Second)
	c.sync(t)
	if now := parsePair(c.data(t, server.Secret)[certKey], c.data(t, server.Secret)[keyKey]); !now.is(before.cert) {
		t.Error("renewed early")
	}
	c.now = c.now.Add(2 * time.Second)
	c.sync(t)
	now := parsePair(c.data(t, server.Secret)[certKey], c.data(t, server.Secret)[keyKey])
	if now.is(before.cert) || !now.cert.NotAfter.Equal(c.now.Add(leafLife).Truncate(time.Second)) {
		t.Errorf("not renewed: it is valid until %s", now.cert.NotAfter)
	}
}

// A change of the authority, step by step.
func TestAnotherAuthorityIsAnnouncedFirst(t *testing.T) {
	c := newSynced(t)
	first := readAuthority(c.data(t, authoritySecret)).current.cert
	look := func() authority { c.sync(t); return readAuthority(c.data(t, authoritySecret)) }
	signer := func() *x509.Certificate {
		return parsePair(c.data(t, server.Secret)[certKey], c.data(t, server.Secret)[keyKey]).cert
	}

	c.annotate(t, "the key was lost")
	if a := look(); a.next == nil || !a.current.is(first) || len(parseBundle(c.data(t, client.Secret)[bundleKey])) != 2 {
		t.Fatalf("not announced: next %v, authorities %d", a.next, len(parseBundle(c.data(t, client.Secret)[bundleKey])))
	}
	look() // sees that everybody's bundle has it, and begins to count
	c.now = c.now.Add(propagation - time.Second)
	if look(); signer().CheckSignatureFrom(first) != nil {
		t.Fatal("the next authority signs before everybody knows it")
	}
	c.now = c.now.Add(time.Second)
	a := look()
	if a.next != nil || a.current.is(first) || signer().CheckSignatureFrom(a.current.cert) != nil {
		t.Fatal("the next authority does not sign when everybody knows it")
	}
	c.now = c.now.Add(leafLife - time.Second)
	if look(); len(parseBundle(c.data(t, server.Secret)[bundleKey])) != 2 {
		t.Error("the authority before is forgotten while certificates of it are valid")
	}
	c.now = c.now.Add(time.Second)
	if look(); len(parseBundle(c.data(t, server.Secret)[bundleKey])) != 1 {
		t.Error("the authority before is never forgotten")
	}
	if a := look(); a.next != nil {
		t.Error("the same text of the annotation was obeyed twice")
	}
}

func TestAnAuthorityIsReplacedBeforeItEnds(t *testing.T) {
	c := newSynced(t)
	first := readAuthority(c.data(t, authoritySecret)).current.cert
	for end := c.now.Add(authorityLife); c.now.Before(end); c.now = c.now.Add(5 * time.Hour) {
		c.sync(t)
		if err := handshake(c.data(t, server.Secret), c.data(t, elsewhere.Secret), c.now); err != nil {
			t.Fatalf("at %s: %v", c.now, err)
		}
	}
	if readAuthority(c.data(t, authoritySecret)).current.is(first) {
		t.Error("an authority that has ended still signs")
	}
}

func TestAMissingSecretIsNamed(t *testing.T) {
	c := newCluster(t, authoritySecret, server.Secret, client.Secret)
	testenv.WantError(t, c.issuer.Sync(t.Context()), "secret queueing/client is missing; apply the manifests")
	if err := handshake(c.data(t, server.Secret), c.data(t, client.Secret), c.now); err != nil {
		t.Errorf("the others are not kept: %v", err)
	}
	c.annotate(t, "now")
	for range 4 {
		_ = c.issuer.Sync(t.Context()) // says the same again
		c.now = c.now.Add(propagation)
	}
	if a := readAuthority(c.data(t, authoritySecret)); len(a.earlier) != 1 {
		t.Error("a missing Secret holds up the change of the authority")
	}
}

// forbid refuses to read the Secret from now on.
func (c *cluster) forbid(name types.NamespacedName) {
	c.PrependReactor("get", "secrets", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if a.GetNamespace() != name.Namespace || a.(clienttesting.GetAction).GetName() != name.Name {
			return false, nil, nil
		}
		return true, nil, apierrors.NewForbidden(corev1.Resource("secrets"), name.Name, errors.New("no Role allows it"))
	})
}

// A deleted namespace takes the Role for its Secret with it, so the API server forbids to
// read the Secret.
func TestOnlyASecretOfAnotherNamespaceCountsAsMissingIfItMayNotBeRead(t *testing.T) {
	for name, tc := range map[string]struct {
		forbidden   Leaf
		wantEarlier int // authorities
	}{
		"another namespace":         {forbidden: elsewhere, wantEarlier: 1},
		"the authority's namespace": {forbidden: client, wantEarlier: 0},
	} {
		t.Run(name, func(t *testing.T) {
			c := newSynced(t)
			c.forbid(tc.forbidden.Secret)
			c.annotate(t, "now")
			for range 4 {
				want := "secret " + tc.forbidden.Secret.String() + " may not be read"
				testenv.WantError(t, c.issuer.Sync(t.Context()), want)
				c.now = c.now.Add(propagation)
			}
			if a := readAuthority(c.data(t, authoritySecret)); len(a.earlier) != tc.wantEarlier {
				t.Errorf("%d earlier authorities, want %d", len(a.earlier), tc.wantEarlier)
			}
		})
	}
}

// If a Secret cannot be read until the authority ends, the others trust the next one.
func TestTheAnnouncedAuthoritySignsWhenTheCurrentOneHasEnded(t *testing.T) {
	c := newSynced(t)
	ends := readAuthority(c.data(t, authoritySecret)).current.cert.NotAfter
	c.forbid(client.Secret)
	c.now = ends.Add(-time.Second)
	_ = c.issuer.Sync(t.Context()) // the error is of the Secret that may not be read
	next, caller := readAuthority(c.data(t, authoritySecret)).next, c.data(t, elsewhere.Secret)
	c.now = ends
	_ = c.issuer.Sync(t.Context())
	if a := readAuthority(c.data(t, authoritySecret)); next == nil || !a.current.is(next.cert) {
		t.Error("the announced authority does not sign")
	}
	if err := accepts(caller, c.data(t, server.Secret), x509.ExtKeyUsageServerAuth, "engine.sys.svc", c.now); err != nil {
		t.Errorf("a caller with the Secret of before: %v", err)
	}
}

// While the clock is wrong, anything may become of the Secrets. One check with the right
// clock makes everybody accept everybody again, and that lasts.
func TestAClockThatWasWrongLeavesNothingBehind(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newSynced(t)
		c.now = c.now.Add(time.Duration(rapid.IntRange(0, 900).Draw(t, "age")) * time.Hour)
		c.sync(t)
		before, asked := readAuthority(c.data(t, authoritySecret)).current.cert, rapid.Bool().Draw(t, "rotate")
		if asked {
			c.annotate(t, "now")
		}
		hours := rapid.OneOf(rapid.IntRange(3, 2500), rapid.IntRange(-2500, -3)).Draw(t, "clock off by hours")
		// A minute more: what becomes valid in exactly an hour is kept.
		off, checks := time.Duration(hours)*time.Hour+time.Minute, rapid.IntRange(1, 6)
		if rapid.Bool().Draw(t, "a little, for a moment") {
			off, checks = time.Duration(rapid.IntRange(-180, 180).Draw(t, "clock off by minutes"))*time.Minute, rapid.Just(1)
		}
		c.now = c.now.Add(off)
		for range checks.Draw(t, "checks") {
			c.sync(t)
			c.now = c.now.Add(propagation)
		}
		c.now = c.now.Add(-off)
		closely, step := c.now.Add(80*time.Minute), propagation
		for end := c.now.Add(leafLife + 10*time.Hour); c.now.Before(end); c.now = c.now.Add(step) {
			if c.now.After(closely) {
				step = 20 * time.Hour
			}
			c.sync(t)
			if err := handshake(c.data(t, server.Secret), c.data(t, client.Secret), c.now); err != nil {
				t.Fatalf("at %s: %v", c.now, err)
			}
			if a := readAuthority(c.data(t, authoritySecret)); a.announced.After(c.now) || a.earlierUntil.After(c.now.Add(authorityLife)) {
				t.Fatalf("at %s: announced at %s, earlier ones trusted until %s", c.now, a.announced, a.earlierUntil)
			}
		}
		if asked && readAuthority(c.data(t, authoritySecret)).current.is(before) {
			t.Fatal("the authority was not replaced, although somebody asked for that")
		}
	})
}

// The executor starts again with a shorter lifetime of certificates. Those with the longer one
// are good as long as they say.
func TestAShorterLifetimeForgetsNoAuthorityEarlier(t *testing.T) {
	c := newSynced(t)
	copied := c.data(t, client.Secret)
	c.annotate(t, "now")
	for range 3 {
		c.sync(t)
		c.now = c.now.Add(propagation)
	}
	c.issuer.cfg.LeafDuration = leafLife / 10
	for end := c.now.Add(leafLife - 10*time.Hour); c.now.Before(end); c.now = c.now.Add(5 * time.Hour) {
		c.sync(t)
		if err := accepts(c.data(t, server.Secret), copied, x509.ExtKeyUsageClientAuth, "", c.now); err != nil {
			t.Fatalf("at %s: %v", c.now, err)
		}
	}
}

func TestAClockThatIsAnHourBehindReplacesNoAuthority(t *testing.T) {
	c := newSynced(t)
	before := readAuthority(c.data(t, authoritySecret)).current.cert
	c.now = c.now.Add(-time.Hour - time.Minute)
	c.sync(t)
	if !readAuthority(c.data(t, authoritySecret)).current.is(before) {
		t.Error("replaced")
	}
}

// Whichever value is damaged, those who have seen the damaged Secret's successor still accept
// the certificates of before.
func TestADamagedAuthorityStaysTrusted(t *testing.T) {
	stages := map[string]func(*testing.T, *cluster){
		"at rest":   func(*testing.T, *cluster) {},
		"announced": func(t *testing.T, c *cluster) { c.annotate(t, "now"); c.sync(t) },
		"in force": func(t *testing.T, c *cluster) {
			c.annotate(t, "now")
			for range 3 {
				c.sync(t)
				c.now = c.now.Add(propagation)
			}
		},
	}
	keys := []string{certKey, keyKey, bundleKey, nextCertKey, nextKeyKey, announcedKey, trustUntilKey, rotatedKey}
	for stage, reach := range stages {
		for _, key := range keys {
			t.Run(stage+", "+key, func(t *testing.T) {
				c := newSynced(t)
				first := readAuthority(c.data(t, authoritySecret)).current.cert
				reach(t, c)
				before, earlier := c.data(t, client.Secret), len(readAuthority(c.data(t, authoritySecret)).earlier)
				c.damage(t, key)
				for range 3 {
					c.sync(t)
					if err := accepts(c.data(t, server.Secret), before, x509.ExtKeyUsageClientAuth, "", c.now); err != nil {
						t.Errorf("the caller's certificate of before: %v", err)
					}
					if err := handshake(c.data(t, server.Secret), c.data(t, client.Secret), c.now); err != nil {
						t.Error(err)
					}
					c.now = c.now.Add(time.Minute)
				}
				if a := readAuthority(c.data(t, authoritySecret)); stage == "announced" && a.next == nil && a.current.is(first) {
					t.Error("the rotation that was asked for is lost")
				}
				if now := len(readAuthority(c.data(t, authoritySecret)).earlier); now < earlier && key != bundleKey {
					t.Errorf("%d earlier authorities, want at least %d", now, earlier)
				}
				for range 5 { // A change of the authority may have to end first.
					c.now = c.now.Add(leafLife)
					c.sync(t)
				}
				if now := len(readAuthority(c.data(t, authoritySecret)).earlier); now != 0 {
					t.Errorf("%d earlier authorities are never forgotten", now)
				}
			})
		}
	}
}

// damage changes a value of the authority's Secret, if it is there.
func (c *cluster) damage(t *testing.T, key string) {
	t.Helper()
	secret, err := c.CoreV1().Secrets(authoritySecret.Namespace).Get(t.Context(), authoritySecret.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := secret.Data[key]; !ok {
		return
	}
	secret.Data[key] = []byte("damaged")
	c.put(t, secret)
}

// Whatever happens in which order, everybody who sees what a Secret said at any
// time within the propagation period accepts everybody else who does.
func TestEverybodyIsAlwaysAccepted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCluster(t, authoritySecret, server.Secret, client.Secret, elsewhere.Secret)
		views := map[string][]view{}
		checked := map[[2]string]time.Time{}
		watch := func() {
			for _, leaf := range []Leaf{server, client, elsewhere} {
				views[leaf.CommonName] = remember(views[leaf.CommonName], view{c.now, c.data(t, leaf.Secret)}, c.now)
			}
		}
		sync := func() {
			if err := c.issuer.Sync(context.Background()); err != nil && !errors.Is(err, errLost) {
				t.Fatal(err)
			}
			watch()
		}
		sync()
		t.Repeat(map[string]func(*rapid.T){
			"look":              func(*rapid.T) { sync() },
			"a moment passes":   func(*rapid.T) { c.now = c.now.Add(time.Second); sync() },
			"minutes pass":      func(r *rapid.T) { c.now = c.now.Add(rapid.Just(time.Minute).Draw(r, "") * 3); sync() },
			"hours pass":        func(*rapid.T) { c.now = c.now.Add(20 * time.Hour); sync() },
			"it is forced":      func(r *rapid.T) { c.annotate(t, rapid.StringMatching("[a-z]{3}").Draw(r, "text")); sync() },
			"a write is lost":   func(r *rapid.T) { c.failing = rapid.IntRange(1, 4).Draw(r, "which"); sync(); c.failing = 0 },
			"a Secret is wiped": func(r *rapid.T) { c.wipe(r, rapid.SampledFrom([]Leaf{client, elsewhere}).Draw(r, "whose")); sync() },
			"": func(r *rapid.T) {
				for _, engine := range views["engine"] {
					for _, caller := range slices.Concat(views["executor"], views["queueing"]) {
						// Of what was good a moment ago, only time can make something else.
						which := [2]string{string(engine.data[certKey]) + string(engine.data[bundleKey]), string(caller.data[certKey]) + string(caller.data[bundleKey])}
						if at, ok := checked[which]; ok && c.now.Sub(at) < 5*time.Hour {
							continue
						}
						checked[which] = c.now
						if err := handshake(engine.data, caller.data, c.now); err != nil {
							r.Fatalf("at %s, with what the Secrets said at %s and %s: %v", c.now, engine.at, caller.at, err)
						}
					}
				}
			},
		})
	})
}

// wipe empties a Secret: somebody wants another certificate.
func (c *cluster) wipe(t *rapid.T, leaf Leaf) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: leaf.Secret.Namespace, Name: leaf.Secret.Name}}
	c.put(t, secret)
}

// A view is what a Secret said from a time on.
type view struct {
	at   time.Time
	data map[string][]byte
}

// remember adds a view, and drops those that ended longer than the propagation
// period ago.
func remember(views []view, v view, now time.Time) []view {
	if len(v.data) > 0 && (len(views) == 0 || !maps.EqualFunc(views[len(views)-1].data, v.data, bytes.Equal)) {
		views = append(views, v)
	}
	for len(views) > 1 && views[1].at.Before(now.Add(-propagation)) {
		views = views[1:]
	}
	return views
}
