# the user creates a Deployment with replicas 2, RollingUpdate
    web-1-a is created without a gate
    web-1-b is created without a gate
    web-1-a is bound to n1
    web-1-b is bound to n2
    web-1-a runs its program without a gate
    web-1-b runs its program without a gate
= the StatefulSingleton does not exist
# the user creates the StatefulSingleton
  patch statefulsingleton db: Keep
  create configmap statefulsingleton-wrapper: Wrapper
  patch pod web-1-a: Protect
  patch pod web-1-b: Protect
= Failed, active: web-1-a, waiting: none
= Available False SeveralPodsRunning: 2 pods may be running the program at the same time, but at most one should: web-1-a, web-1-b
= Progressing False Steady: no handover in progress
= Degraded True SeveralPodsRunning: 2 pods may be running the program at the same time, but at most one should: web-1-a, web-1-b. Stop all but one: kubectl -n ns delete pod web-1-b
= UnmanagedPod True PodWithoutGate: these pods match the selector and may be running the program without the gate, because they were created before the StatefulSingleton, without its webhook, before spec.containers listed their containers, or with a gate that is not the operator's: web-1-a, web-1-b. No other pod starts until they have stopped. To continue: kubectl -n ns delete pod web-1-a web-1-b
# a user deletes the running pod
    web-1-c is created
    web-1-c is bound to n3
    web-1-a stops
    web-1-c waits at its gate
  patch pod web-1-a: Release
= Transitioning, active: web-1-b, waiting: web-1-c
= Available True ActivePodReady: pod web-1-b is running
= Progressing True WaitingForStop: pod web-1-b may be running its program and was not asked to stop; waiting: web-1-c
= Degraded False Healthy: no problems detected
= UnmanagedPod True PodWithoutGate: these pods match the selector and may be running the program without the gate, because they were created before the StatefulSingleton, without its webhook, before spec.containers listed their containers, or with a gate that is not the operator's: web-1-b. No other pod starts until they have stopped. To continue: kubectl -n ns delete pod web-1-b
# 5m1s pass
= Failed, active: web-1-b, waiting: web-1-c
= Available True ActivePodReady: pod web-1-b is running
= Progressing True WaitingForStop: pod web-1-b may be running its program and was not asked to stop; waiting: web-1-c
= Degraded True TransitionTimeout: the handover takes longer than maxTransitionTime (300 s): pod web-1-b may be running its program and was not asked to stop; waiting: web-1-c; it continues as soon as this changes
= UnmanagedPod True PodWithoutGate: these pods match the selector and may be running the program without the gate, because they were created before the StatefulSingleton, without its webhook, before spec.containers listed their containers, or with a gate that is not the operator's: web-1-b. No other pod starts until they have stopped. To continue: kubectl -n ns delete pod web-1-b
# a user deletes the running pod
    web-1-d is created
    web-1-d is bound to n1
    web-1-b stops
    web-1-d waits at its gate
  patch pod web-1-b: Release
  patch status of statefulsingleton db: Holder, web-1-c, epoch 1
  patch pod web-1-c: Grant, epoch 1
  set a condition of pod web-1-c: Ready, True
    web-1-c runs its program
  patch pod web-1-c: Remind, epoch 1
= Running, active: web-1-c, waiting: web-1-d
= Available True ActivePodReady: pod web-1-c is running
= Progressing False Steady: no handover in progress
= Degraded False Healthy: no problems detected
