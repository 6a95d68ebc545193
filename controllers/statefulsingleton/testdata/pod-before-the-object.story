# the user makes a Deployment of 1, RollingUpdate
    web-1-a is made without a gate
    web-1-a is bound to n1
    web-1-a runs its program, which no one held back
= there is no StatefulSingleton
# the user makes the StatefulSingleton
  patch statefulsingleton db: Keep
  create configmap statefulsingleton-wrapper: Wrapper
  patch pod web-1-a: Protect
= Running, active: web-1-a, waiting: none
= Available True ActivePodReady: pod web-1-a runs
= Progressing False Steady: no handover in progress
= Degraded False Healthy: no problems detected
= UnmanagedPod True PodWithoutGate: these pods match and may be running the program without the gate, because they were made before the StatefulSingleton, without its webhook, or before spec.containers named their containers, or came through a gate that is not the operator's: web-1-a. No other pod starts until they have stopped. To go on: kubectl -n ns delete pod web-1-a
# the user wants image two
    web-2-b is made
    web-2-b is bound to n2
    web-2-b waits at its gate
  delete pod web-1-a: Superseded, a pod of the newest revision waits for it
    web-1-c is made
    web-1-c is bound to n3
    web-1-a stops
    web-1-c waits at its gate
  patch pod web-1-a: Release
  patch status of statefulsingleton db: Holder, web-2-b, epoch 1
  patch pod web-2-b: Grant, epoch 1
  set a condition of pod web-2-b: Ready, True
    web-2-b runs its program
  patch pod web-2-b: Remind, epoch 1
    web-1 is scaled to 0
    web-1 deletes web-1-c
    web-1-c stops
= Running, active: web-2-b, waiting: none
= Available True ActivePodReady: pod web-2-b runs
= Progressing False Steady: no handover in progress
= Degraded False Healthy: no problems detected
