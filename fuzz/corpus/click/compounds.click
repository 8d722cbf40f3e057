elementclass Gate { $port, DEPTH $depth, __REST__ $rest |
  input [0] => ( [0] -> q :: Queue($depth) -> [0]; [1] -> Discard )
  -> output;
} || { $port | input -> Paint($port) -> output } || ...
define($N 3, $M "a\<0d0A>b")
require(package "x", library y.click)
Idle -> Gate($N, DEPTH ${M-2}) -> { -> Null -> } -> [1] s :: Switch($(eval $N + 1)) [0-1] => [0] d, [1] d;
d :: Discard;
