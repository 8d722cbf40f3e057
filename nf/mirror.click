// Mirror -- copies frames to a monitoring port
//
// Every frame leaves on output 0 as it came, and a copy of it on output 1.
//
// = IPV6
//
// IPv6 is copied as all other frames are.
//
// = EXAMPLE
//
// FromDevice(lan) -> mirror :: Mirror;
// mirror[0] -> ToDevice(wan);
// mirror[1] -> ToDevice(probe);
//
// = SEE ALSO
//
// Tee, Match

elementclass Mirror {
  input -> copies :: Tee -> [0] output;
  copies[1] -> [1] output;
}
