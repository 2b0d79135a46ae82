/* Arduino.h: what a sketch uses of Arduino, on a board without a C library: see ../board. loop()
 * runs once. */
extern "C" {
int puts(const char *text);
int printf(const char *form, ...);
}
struct Print {
  void begin(long) {}
  void println(const char *text) {
    puts(text);
  }
  void println(double x) {
    printf("%g\n", x);
  }
};
static Print Serial;
static inline void delay(unsigned long) {}
void setup();
void loop();
extern "C" int sketch_main(void) {
  setup();
  loop();
  return 0;
}
