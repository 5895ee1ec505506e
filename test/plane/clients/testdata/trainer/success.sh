# A TrainJob ends well, in time.
runtime a 'sleep 2'
trainjob a 'activeDeadlineSeconds: 60,'
until_true trainjob/a Complete
