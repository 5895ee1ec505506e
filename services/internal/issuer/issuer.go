package issuer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// Bounds of the time between two checks of the Secrets.
const (
	minPeriod = 100 * time.Millisecond
	maxPeriod = 30 * time.Second
)

// Config configures an Issuer. Every field but Now is required. A leaf is valid for at least three
// times Propagation, and an authority for at least three times as long as a leaf.
type Config struct {
	Client typedcorev1.SecretsGetter
	// Authority is the Secret of the authority, with its key.
	Authority types.NamespacedName
	// Leaves are the certificates to keep.
	Leaves []Leaf
	// AuthorityDuration and LeafDuration are how long certificates are valid. They are
	// renewed after two thirds of that time. The last third of an authority's validity
	// must be enough for a leaf.
	AuthorityDuration, LeafDuration time.Duration
	// Propagation is how long it may take until everybody has a Secret's new content.
	Propagation time.Duration
	Registerer  prometheus.Registerer
	Logger      *slog.Logger
	// Now is the clock; time.Now if nil.
	Now func() time.Time
}

// An Issuer keeps an authority and its certificates.
type Issuer struct {
	cfg     Config
	expires *prometheus.GaugeVec
	errors  prometheus.Counter
}

// New fails if its metrics are already registered. Nothing is read or written before Run.
func New(cfg Config) (*Issuer, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	i := &Issuer{
		cfg: cfg,
		expires: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "jobpolicy_issued_certificate_expiration_timestamp_seconds",
			Help: "When the certificate in the Secret expires, by the replica that keeps it.",
		}, []string{"namespace", "secret"}),
		errors: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "jobpolicy_certificate_issue_errors_total",
			Help: "Looks at the certificates' Secrets that ended with an error; tried again with the next one.",
		}),
	}
	return i, errors.Join(cfg.Registerer.Register(i.expires), cfg.Registerer.Register(i.errors))
}

// Run keeps the certificates until ctx is done. It logs errors and tries again.
func (i *Issuer) Run(ctx context.Context) error {
	period := min(max(i.cfg.Propagation/4, minPeriod), maxPeriod)
	tick := time.NewTicker(period)
	defer tick.Stop()
	// A replica that no longer leads exports no expiry times, because they would be old.
	defer i.expires.Reset()
	var last string
	for {
		err := i.Sync(ctx)
		if err != nil && ctx.Err() == nil {
			i.errors.Inc()
			if err.Error() != last {
				i.cfg.Logger.Error("certificates not kept", "error", err)
			}
			last = err.Error()
		}
		if err == nil {
			last = ""
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Sync checks the Secrets once, and writes the certificates that are missing or due.
func (i *Issuer) Sync(ctx context.Context) error {
	secret, err := i.read(ctx, i.cfg.Authority)
	if err != nil {
		return err
	}
	leaves, seenAll, errs := i.readLeaves(ctx)
	current, err := i.advance(ctx, secret, seenAll && allHave(leaves, readAuthority(secret.Data)))
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	i.tell(i.cfg.Authority, current.current)
	for n, leaf := range i.cfg.Leaves {
		if leaves[n] != nil {
			errs = append(errs, i.keep(ctx, leaf, leaves[n], current))
		}
	}
	return errors.Join(errs...)
}

// advance takes the authority's next step, if one is due. The Secret holds the authority
// that it returns.
func (i *Issuer) advance(ctx context.Context, secret *corev1.Secret, seen bool) (authority, error) {
	next, err := readAuthority(secret.Data).advance(rotation{
		name: i.cfg.Authority.Name, now: i.cfg.Now(), wanted: secret.Annotations[RotateAnnotation], seen: seen,
		lifetime: i.cfg.AuthorityDuration, leaf: i.cfg.LeafDuration, propagation: i.cfg.Propagation,
	})
	if err != nil {
		return authority{}, err
	}
	wrote, err := i.write(ctx, secret, next.data())
	if wrote {
		i.cfg.Logger.Info("certificate authority changed", "secret", i.cfg.Authority.String(),
			"signing", next.current.cert.Subject.CommonName, "announced", next.next != nil, "earlier", len(next.earlier))
	}
	return next, err
}

// allHave reports whether the ca.crt of every leaf is the authority's bundle. A leaf that
// is nil does not count.
func allHave(leaves []*corev1.Secret, a authority) bool {
	if a.current == nil {
		return false
	}
	want := a.bundle()
	for _, leaf := range leaves {
		if leaf != nil && !bytes.Equal(leaf.Data[bundleKey], want) {
			return false
		}
	}
	return true
}

func (i *Issuer) keep(ctx context.Context, leaf Leaf, secret *corev1.Secret, by authority) error {
	data, err := leaf.renew(secret.Data, by, i.cfg.Now(), i.cfg.LeafDuration)
	if err != nil {
		return err
	}
	wrote, err := i.write(ctx, secret, data)
	if err != nil {
		return err
	}
	have := parsePair(data[certKey], data[keyKey])
	i.tell(leaf.Secret, have)
	if wrote {
		i.cfg.Logger.Info("certificate written", "secret", leaf.Secret.String(), "notAfter", have.cert.NotAfter, "authorities", len(parseBundle(data[bundleKey])))
	}
	return nil
}

func (i *Issuer) tell(secret types.NamespacedName, have *pair) {
	i.expires.WithLabelValues(secret.Namespace, secret.Name).Set(float64(have.cert.NotAfter.Unix()))
}

// readLeaves returns nil for a Secret that cannot be read, so that the others are renewed
// all the same. seenAll is false if a Secret could not be read that may exist. A missing
// one does not matter, because nobody reads it. One in another namespace that may not be
// read counts as missing: if that namespace is deleted, the Role for its Secret is, too.
func (i *Issuer) readLeaves(ctx context.Context) (leaves []*corev1.Secret, seenAll bool, errs []error) {
	seenAll = true
	for _, leaf := range i.cfg.Leaves {
		secret, err := i.read(ctx, leaf.Secret)
		if err != nil {
			errs = append(errs, err)
			gone := apierrors.IsForbidden(err) && leaf.Secret.Namespace != i.cfg.Authority.Namespace
			seenAll = seenAll && (apierrors.IsNotFound(err) || gone)
		}
		leaves = append(leaves, secret)
	}
	return leaves, seenAll, errs
}

func (i *Issuer) read(ctx context.Context, name types.NamespacedName) (*corev1.Secret, error) {
	secret, err := i.cfg.Client.Secrets(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("secret %s is missing; apply the manifests, which have it, again: %w", name, err)
	}
	if apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("secret %s may not be read; if its namespace is gone, remove the client, else apply the manifests again: %w", name, err)
	}
	if err != nil {
		return nil, fmt.Errorf("read secret %s: %w", name, err)
	}
	return secret, nil
}

// write stores the data, unless the Secret has it already. It fails if the Secret was
// changed since it was read.
func (i *Issuer) write(ctx context.Context, secret *corev1.Secret, data map[string][]byte) (wrote bool, err error) {
	if maps.EqualFunc(secret.Data, data, bytes.Equal) {
		return false, nil
	}
	changed := secret.DeepCopy()
	changed.Data = data
	if _, err = i.cfg.Client.Secrets(secret.Namespace).Update(ctx, changed, metav1.UpdateOptions{}); err != nil {
		return false, fmt.Errorf("write secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	return true, nil
}
