package world

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedbatchv1 "k8s.io/client-go/kubernetes/typed/batch/v1"
	typedcoordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"jobpolicy.dev/executor/podcache"
)

// A client has the calls that the executor and the actors use of a clientset. Any other
// call panics.
type client struct {
	kubernetes.Interface
	core         typedcorev1.CoreV1Interface
	batch        typedbatchv1.BatchV1Interface
	coordination typedcoordinationv1.CoordinationV1Interface
	last         atomic.Pointer[serverTime] // nil before the first answer.
}

// A serverTime is the Date header of an answer, and when the answer arrived.
type serverTime struct {
	text           string // As it stood in the header.
	date, received time.Time
}

// clientOptions are how a client differs from a plain one.
type clientOptions struct {
	lean bool    // It decodes only the pod fields that the executor keeps.
	qps  float32 // 0: no limit.
}

// CoreV1 implements kubernetes.Interface.
func (c *client) CoreV1() typedcorev1.CoreV1Interface { return c.core }

// BatchV1 implements kubernetes.Interface.
func (c *client) BatchV1() typedbatchv1.BatchV1Interface { return c.batch }

// CoordinationV1 implements kubernetes.Interface.
func (c *client) CoordinationV1() typedcoordinationv1.CoordinationV1Interface { return c.coordination }

// record takes the API server's time from an answer.
func (c *client) record(resp *http.Response) {
	text := resp.Header.Get("Date")
	if last := c.last.Load(); last != nil && last.text == text {
		c.last.Store(&serverTime{text, last.date, time.Now()})
		return
	}
	if at, err := http.ParseTime(text); err == nil {
		c.last.Store(&serverTime{text, at, time.Now()})
	}
}

// serverNow is the API server's time as the executor's program computes it from the
// last answer. It is zero before the first answer.
func (c *client) serverNow() time.Time {
	last := c.last.Load()
	if last == nil {
		return time.Time{}
	}
	return last.date.Add(time.Since(last.received))
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// newClient makes a client that sends protobuf, as the executor's program does.
func newClient(transport http.RoundTripper, o clientOptions) (*client, error) {
	c := &client{}
	recording := roundTripper(func(r *http.Request) (*http.Response, error) {
		resp, err := transport.RoundTrip(r)
		if err == nil {
			c.record(resp)
		}
		return resp, err
	})
	cfg := &rest.Config{
		Host: "http://api", QPS: -1,
		ContentConfig: rest.ContentConfig{
			ContentType:        runtime.ContentTypeProtobuf,
			AcceptContentTypes: runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON,
		},
	}
	if o.qps > 0 {
		cfg.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(o.qps, int(o.qps*1.5))
	}
	sender := &http.Client{Transport: recording}
	var err error
	if c.core, err = newCore(cfg, sender, o.lean); err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	if c.batch, err = typedbatchv1.NewForConfigAndClient(cfg, sender); err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	if c.coordination, err = typedcoordinationv1.NewForConfigAndClient(cfg, sender); err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	return c, nil
}

// newUnserved makes a client of an API server that serves none of the resources that it asks for.
func newUnserved() (dynamic.Interface, error) {
	unserved := roundTripper(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusNotFound, Request: r, Header: http.Header{}, Body: http.NoBody}, nil
	})
	return dynamic.NewForConfigAndClient(&rest.Config{Host: "http://api", QPS: -1}, &http.Client{Transport: unserved})
}

func newCore(cfg *rest.Config, sender *http.Client, lean bool) (typedcorev1.CoreV1Interface, error) {
	if !lean {
		return typedcorev1.NewForConfigAndClient(cfg, sender)
	}
	own := rest.CopyConfig(cfg)
	own.APIPath, own.GroupVersion = "/api", &corev1.SchemeGroupVersion
	own.NegotiatedSerializer = podcache.Serializer(rest.CodecFactoryForGeneratedClient(scheme.Scheme, scheme.Codecs).WithoutConversion())
	c, err := rest.RESTClientForConfigAndClient(own, sender)
	if err != nil {
		return nil, err
	}
	return typedcorev1.New(c), nil
}
