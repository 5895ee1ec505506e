# Where a rule of JobSet looks at the message of a failed Job, it looks at the Job's typed end, too.
s/ anyMatchFound(ctx, rule.OnJobFailureMessagePatterns, jobFailureMessage)$/ failureMatches(ctx, rule.OnJobFailureMessagePatterns, failedJob, jobFailureMessage)/
