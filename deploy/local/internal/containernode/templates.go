package containernode

import (
	"bytes"
	"embed"
	"path/filepath"
	"text/template"
)

//go:embed templates
var files embed.FS

var templates = template.Must(template.ParseFS(files, "templates/*"))

// ContainerdArgs are containerd's arguments.
func (c Config) ContainerdArgs() []string { return []string{"--config=" + c.containerd()} }

func (c Config) containerdConfig() ([]byte, error) {
	return render("containerd.toml", map[string]any{
		"Root":   c.DataDir,
		"Socket": Socket,
		"Pause":  PauseImage,
		"CNIBin": filepath.Join(c.BinDir, "cni"),
		"CNI":    c.cniDir(),
		"Runc":   filepath.Join(c.BinDir, "runc"),

		"Registries": c.registries(),
	})
}

// registryHosts sends containerd to one registry for all images.
func (c Config) registryHosts() ([]byte, error) {
	return render("hosts.toml", map[string]any{"Registry": c.Registry})
}

// CoreDNSArgs are CoreDNS's arguments.
func (c Config) CoreDNSArgs() []string { return []string{"-conf=" + c.coreDNS()} }

func (c Config) corefile() ([]byte, error) {
	return render("Corefile", map[string]any{
		"Node":       NodeAddress,
		"Domain":     ClusterDomain,
		"Kubeconfig": c.DNSKubeconfig,
		"Ready":      c.DNSReady,
	})
}

func render(name string, data any) ([]byte, error) {
	var text bytes.Buffer
	err := templates.ExecuteTemplate(&text, name, data)
	return text.Bytes(), err
}
