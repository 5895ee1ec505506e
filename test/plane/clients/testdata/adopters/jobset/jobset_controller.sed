# The one place of JobSet that has to change: where it asks whether its success policy is met, an error must be able
# to come back.
/completed := executeSuccessPolicy(js, ownedJobs, updateStatusOpts); completed {$/ {
	s/completed := executeSuccessPolicy(/completed, err := askSuccessPolicy(ctx, /
	s/; completed {$/; completed || err != nil {/
	n
	s/nil$/err/
}
