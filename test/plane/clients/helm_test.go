package clients

// helm runs Jobs as hooks, and waits for those of a chart.
var helm = client{name: "helm", needs: []string{"kubectl", "helm"}}
