package clients

// kubectl creates, waits for, replaces and deletes Jobs.
var kubectl = client{name: "kubectl", needs: []string{"kubectl"}}
