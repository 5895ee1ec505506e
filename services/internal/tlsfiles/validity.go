package tlsfiles

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/credentials"

	"jobpolicy.dev/services/internal/probes"
)

// soonPart: a certificate expires soon in the last tenth of its validity. It should have
// been renewed long before.
const soonPart = 10

// Watch reports when the credentials' certificate expires: in a metric, and in a check,
// which fails if the certificate is expired or not valid yet. Without a certificate the
// check does not apply, and the metric is 0.
func Watch(creds credentials.TransportCredentials, r prometheus.Registerer) (probes.Check, error) {
	v := validity{}
	if f, ok := creds.(*following); ok {
		v.following = f
	}
	err := r.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "jobpolicy_certificate_expiration_timestamp_seconds",
		Help: "When the certificate that this process shows to others expires; 0 without a certificate.",
	}, v.expiration))
	return probes.Check{Name: "certificate", Run: v.check, Idle: v.none, Note: v.note}, err
}

// validity reads when the certificate in use is valid.
type validity struct{ *following }

// times are zero without a certificate.
func (v validity) times() (from, until time.Time, err error) {
	if v.following == nil {
		return from, until, nil
	}
	cfg, err := v.current()
	if err != nil || len(cfg.Certificates) == 0 {
		return from, until, err
	}
	leaf := cfg.Certificates[0].Leaf
	return leaf.NotBefore, leaf.NotAfter, nil
}

func (v validity) expiration() float64 {
	_, until, err := v.times()
	if err != nil || until.IsZero() {
		return 0
	}
	return float64(until.Unix())
}

func (v validity) none() (why string, none bool) {
	_, until, err := v.times()
	return "no certificate is shown", err == nil && until.IsZero()
}

func (v validity) check(context.Context) error {
	from, until, err := v.times()
	if err != nil {
		return err
	}
	if time.Now().Before(from) {
		return fmt.Errorf("valid only from %s on: nobody accepts it before, or this machine's clock is wrong", from.UTC().Format(time.RFC3339))
	}
	if !time.Now().Before(until) {
		return fmt.Errorf("expired at %s: nobody accepts it", until.UTC().Format(time.RFC3339))
	}
	return nil
}

// note says when a certificate expires, and warns if that is soon.
func (v validity) note() string {
	from, until, err := v.times()
	if err != nil {
		return ""
	}
	text := "expires at " + until.UTC().Format(time.RFC3339)
	if time.Until(until) < until.Sub(from)/soonPart {
		text = "warning: it was not renewed and " + text
	}
	return text
}
