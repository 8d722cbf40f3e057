# 12 "other.click"
a, b :: Idle; /* a comment
over lines */ a -> b # 9
#line 3
b ~> a; b ~/x> a
