package clients

// k9s lists, describes and deletes Jobs, and starts and suspends CronJobs, in a terminal.
var k9s = client{name: "k9s", needs: []string{"kubectl", "terminal", "k9s"}}
