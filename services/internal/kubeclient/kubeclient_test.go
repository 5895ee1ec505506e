package kubeclient

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"k8s.io/klog/v2"

	"jobpolicy.dev/services/internal/testenv"
)

func TestConfigTakesRateAndNameFromOptions(t *testing.T) {
	o := Options{Kubeconfig: testenv.StartAPI(t).Kubeconfig, QPS: 7, Burst: 9}
	cfg, err := o.Config("tester/v1")
	if err != nil {
		t.Fatal(err)
	}
	if cfg.QPS != 7 || cfg.Burst != 9 || cfg.UserAgent != "tester/v1" || !strings.HasPrefix(cfg.Host, "http://127.0.0.1:") {
		t.Errorf("Config() = %v QPS, %v burst, %q, host %q", cfg.QPS, cfg.Burst, cfg.UserAgent, cfg.Host)
	}
}

func TestOutsideAPodTheFlagIsNamed(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	_, err := (&Options{}).Config("x")
	testenv.WantError(t, err, "--kubeconfig")
}

func TestLeaseClientLeavesTheSharedConfigAlone(t *testing.T) {
	o := Options{Kubeconfig: testenv.StartAPI(t).Kubeconfig, QPS: 7, Burst: 9}
	cfg, err := o.Config("tester/v1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewForLease(cfg, 10*time.Second); err != nil {
		t.Fatal(err)
	}
	if cfg.Timeout != 0 || cfg.UserAgent != "tester/v1" {
		t.Errorf("the shared config has timeout %s and user agent %q now", cfg.Timeout, cfg.UserAgent)
	}
}

func TestClientLogsGoToTheLogger(t *testing.T) {
	t.Cleanup(klog.ClearLogger)
	cases := map[string]struct {
		level slog.Level
		want  string
	}{
		"at info":  {slog.LevelInfo, "level=INFO msg=plain k=1\n"},
		"at debug": {slog.LevelDebug, "level=INFO msg=plain k=1\nlevel=DEBUG+2 msg=verbose\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			RouteLogs(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{
				Level: tc.level,
				ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
					if a.Key == slog.TimeKey {
						return slog.Attr{}
					}
					return a
				},
			})))
			klog.InfoS("plain", "k", 1)
			klog.V(2).InfoS("verbose")
			klog.V(6).InfoS("chatter")
			if got := out.String(); got != tc.want {
				t.Errorf("logged %q, want %q", got, tc.want)
			}
		})
	}
}
