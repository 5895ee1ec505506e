package hostnode

import (
	"strings"
	"testing"
	"time"

	"jobpolicy.dev/deploy/local/must"
)

func validConfig() Config {
	return Config{
		Kubeconfig: "kubeconfig", NodeName: "local", RootDir: "root", Address: "127.0.0.1:0",
		ServingCertFile: "cert", ServingKeyFile: "key", ClientCAFile: "ca",
		CrashBackoffBase: time.Second, CrashBackoffMax: time.Minute, MaxPods: 10,
	}
}

func TestValidConfigIsAccepted(t *testing.T) {
	must.Succeed(t, validConfig().validate())
}

func TestConfigErrorNamesItsField(t *testing.T) {
	cases := map[string]struct {
		change func(*Config)
		want   string
	}{
		"no kubeconfig":                   {func(c *Config) { c.Kubeconfig = "" }, "Kubeconfig"},
		"no node name":                    {func(c *Config) { c.NodeName = "" }, "NodeName"},
		"a node name that is no DNS name": {func(c *Config) { c.NodeName = "My_Node" }, "NodeName"},
		"no root directory":               {func(c *Config) { c.RootDir = "" }, "RootDir"},
		"an address without a port":       {func(c *Config) { c.Address = "127.0.0.1" }, "Address"},
		"no serving certificate":          {func(c *Config) { c.ServingCertFile = "" }, "ServingCertFile"},
		"no serving key":                  {func(c *Config) { c.ServingKeyFile = "" }, "ServingKeyFile"},
		"no client authority":             {func(c *Config) { c.ClientCAFile = "" }, "ClientCAFile"},
		"no back-off":                     {func(c *Config) { c.CrashBackoffBase = 0 }, "CrashBackoffBase"},
		"a back-off that shrinks":         {func(c *Config) { c.CrashBackoffMax = time.Millisecond }, "CrashBackoffMax"},
		"a container variable without =":  {func(c *Config) { c.ContainerEnv = []string{"A=1", "B"} }, "ContainerEnv"},
		"no room for pods":                {func(c *Config) { c.MaxPods = 0 }, "MaxPods"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := validConfig()
			tc.change(&c)
			err := Run(t.Context(), c)
			if err == nil || !strings.Contains(err.Error(), tc.want+": ") {
				t.Fatalf("error %v does not name %s", err, tc.want)
			}
		})
	}
}

func TestConfigReportsAllBadFieldsAtOnce(t *testing.T) {
	err := Config{}.validate()
	for _, field := range []string{
		"Kubeconfig", "NodeName", "RootDir", "Address", "ServingCertFile", "ServingKeyFile", "ClientCAFile",
		"CrashBackoffBase", "MaxPods",
	} {
		if err == nil || !strings.Contains(err.Error(), field+": ") {
			t.Errorf("%s is not named in: %v", field, err)
		}
	}
}
