/* mathlibd.h: functions of double; see mathlib.h. */
#ifndef INGOT_MATHLIBD_H
#define INGOT_MATHLIBD_H

#include "ir/math/mathlib.h"

/*@ imk_add needs: */
/* Error-free sum and product: the rounded result and its rounding error. Factors are split by bit
 * masks, so that contraction does not matter. */
static inline double imk_add(double a, double b, double *lo) {
  double s = a + b, t = s - a;
  *lo = (a - (s - t)) + (b - t);
  return s;
}
/*@ end */

/*@ imk_addf needs: */
/* imk_add if |a| >= |b| or a = 0. */
static inline double imk_addf(double a, double b, double *lo) {
  double s = a + b;
  *lo = b - (s - a);
  return s;
}
/*@ end */

/*@ imk_mul needs: imk_f64 imk_u64 */
static inline double imk_mul(double a, double b, double *lo) {
  double ah = imk_f64(imk_u64(a) & 0xfffffffff8000000), al = a - ah;
  double bh = imk_f64(imk_u64(b) & 0xfffffffff8000000), bl = b - bh, p = a * b;
  *lo = ((ah * bh - p) + ah * bl + al * bh) + al * bl;
  return p;
}
/*@ end */

/*@ imk_scale needs: imk_f64 */
/* x 2^k for |k| < 2000, rounded at most once */
static inline double imk_scale(double x, int k) {
  int h = k / 2;
  return x * imk_f64((uint64_t)(1023 + h) << 52) * imk_f64((uint64_t)(1023 + k - h) << 52);
}
/*@ end */

/*@ imk_exp needs: imk_p4 imk_p5 */
/* exp(x + xl) = 2^k (hi + lo) for |x| < 1000 and |xl| <= ulp(x); returns k. hi is rounded to
 * nearest. hi + lo is accurate to 57 bits, because 1 + r is kept separate from the rest. */
static inline int imk_exp(double x, double xl, double *hi, double *lo) {
  double k = (x * 0x1.71547652b82fep0 + 0x1.8p52) - 0x1.8p52;
  double t = x - k * 0x1.62e42fefa38p-1, w = k * 0x1.ef35793c7673p-45, r = t - w;
  double rl = ((t - r) - w) + xl, r2 = r * r, p;
  p = r2 * (imk_p5(r, r2, 0x1p-1, 0x1.555555555555bp-3, 0x1.5555555555503p-5, 0x1.111111110ec64p-7,
                   imk_p5(r, r2, 0x1.6c16c16c303bcp-10, 0x1.a01a01b37be6ap-13,
                          0x1.a01a0136cc6a8p-16, 0x1.71ddf0262c6eap-19,
                          imk_p4(r, r2, 0x1.27e5b3c8da711p-22, 0x1.af6bdf0c0b896p-26,
                                 0x1.1e3de8d352458p-29, 0))));
  t = 1 + r;
  w = ((1 - t) + r) + (p + (rl + rl * (r + p)));
  *hi = t + w;
  *lo = (t - *hi) + w;
  return (int)k;
}
/*@ end */

/*@ exp needs: imk_abs imk_exp imk_inf imk_scale */
/* error 0.76 */
static inline double im_exp(double x) {
  double hi, lo;
  int k;
  if (!(imk_abs(x) < 750)) return x > 0 ? imk_inf() : x < 0 ? 0 : x;
  k = imk_exp(x, 0, &hi, &lo);
  return imk_scale(hi, k);
}
/*@ end */

/*@ exp_nonpos needs: exp */
static inline double im_exp_nonpos(double x) {
  return im_exp(x);
}
/*@ end */

/*@ exp_p1 needs: exp */
/* error 1.3 */
static inline double im_exp_p1(double x) {
  return 1 + im_exp(x);
}
/*@ end */

/* clang-format off */
/*@ imk_logs needs: */
static const double imk_logs[192] = {
    0x1.682p0, -0x1.5d76dd9a78p-2, 0x1.cbf6c326244f5p-44, 0x1.642p0, -0x1.5206dfd186p-2,
    -0x1.c58cfd28f3cd8p-44, 0x1.606p0, -0x1.472fdbe4fdp-2, -0x1.f9364c53f821fp-45, 0x1.5cap0,
    -0x1.3c3b2736b4p-2, 0x1.3e5d1e9d3ddf9p-47, 0x1.58ep0, -0x1.31281d5f11p-2,
    0x1.6e10e6a8b7abcp-48, 0x1.556p0, -0x1.26b620935p-2, -0x1.8f08bb3f17379p-44, 0x1.51ep0,
    -0x1.1c2895218fp-2, -0x1.5ff09640395a7p-45, 0x1.4e6p0, -0x1.117ee81dfep-2,
    -0x1.30f778a2e8cbdp-44, 0x1.4bp0, -0x1.071b85fcd6p-2, 0x1.bcb8ba3e01a11p-44, 0x1.47ap0,
    -0x1.f939c4e72ep-3, 0x1.4c5fc35fe2798p-44, 0x1.446p0, -0x1.e4ceeda61ep-3,
    0x1.2ccbe398170f7p-46, 0x1.414p0, -0x1.d0fb7f2256p-3, 0x1.af52b20633b29p-47, 0x1.3e2p0,
    -0x1.bcf6736f7ep-3, 0x1.271e894f591e4p-44, 0x1.3b2p0, -0x1.a98ed238b8p-3,
    -0x1.126ffb47b9acp-48, 0x1.382p0, -0x1.95f7ac2b3cp-3, 0x1.615d77a1ffe43p-44, 0x1.352p0,
    -0x1.8230164c1ap-3, -0x1.98dd68a5d0b48p-46, 0x1.324p0, -0x1.6f0d28ae56p-3,
    -0x1.69737c93373dap-44, 0x1.2f6p0, -0x1.5bbc05f14p-3, -0x1.21892c55da347p-45, 0x1.2cap0,
    -0x1.4915d832fcp-3, 0x1.53cee006bcf62p-44, 0x1.29ep0, -0x1.3643cad058p-3,
    -0x1.1e18f2132dfd5p-44, 0x1.274p0, -0x1.2423113ba6p-3, 0x1.e3a0078ee9d9cp-44, 0x1.24ap0,
    -0x1.11d8e5e29p-3, -0x1.1c6fa52eaa55bp-45, 0x1.22p0, -0x1.fec9131dcp-4, 0x1.54555d1ae6607p-44,
    0x1.1f8p0, -0x1.db5270187cp-4, -0x1.9277856ae181fp-44, 0x1.1dp0, -0x1.b78c82bb1p-4,
    0x1.25ef7bc3987e7p-44, 0x1.1a8p0, -0x1.9375e55594p-4, -0x1.eddc37380c364p-44, 0x1.182p0,
    -0x1.70e12b325cp-4, -0x1.0530d95714cd1p-45, 0x1.15cp0, -0x1.4e01108a34p-4,
    -0x1.ae5cfdf2c5ae5p-44, 0x1.136p0, -0x1.2ad449eff4p-4, 0x1.cea3ae5f05b87p-44, 0x1.112p0,
    -0x1.0939853a1cp-4, -0x1.91761e583dc8fp-45, 0x1.0ecp0, -0x1.cae72fb96p-5,
    0x1.efabf2025b1bep-44, 0x1.0cap0, -0x1.8a5a9cc618p-5, 0x1.9ae2900180e9ap-44, 0x1.0a6p0,
    -0x1.4572e981c8p-5, -0x1.6c7eaf9b37d75p-44, 0x1.084p0, -0x1.03d5d85e7p-5,
    -0x1.f778960ed29cfp-44, 0x1.062p0, -0x1.83624fba8p-6, -0x1.deb9c96b40046p-45, 0x1.042p0,
    -0x1.05e547827p-6, 0x1.0dbde21f5e1f8p-44, 0x1.02p0, -0x1.fe02a6b1p-8, -0x1.9e23f0dda40e4p-46,
    1, 0, 0, 0x1.f8p-1, 0x1.020565893p-6, 0x1.611d27c8e8417p-44, 0x1.f08p-1, 0x1.f7a9b1678p-6,
    0x1.42ad9271be7d7p-45, 0x1.e9p-1, 0x1.788595a358p-5, -0x1.08b0d083b3a4cp-46, 0x1.e2p-1,
    0x1.eea31c0068p-5, 0x1.c3dd83606d891p-44, 0x1.dbp-1, 0x1.333d7f8184p-4,
    -0x1.692b6a81b8848p-49, 0x1.d4p-1, 0x1.700d30aeacp-4, 0x1.c1e8da99ded32p-49, 0x1.cd8p-1,
    0x1.a956d3ecacp-4, 0x1.e63794c02c4afp-44, 0x1.c7p-1, 0x1.e3707ee304p-4, 0x1.0f684e6766abdp-45,
    0x1.c1p-1, 0x1.0ce7ecdcccp-3, 0x1.4652dabff5447p-46, 0x1.bacp-1, 0x1.299d30c606p-3,
    0x1.d4d0079dc08d9p-44, 0x1.b5p-1, 0x1.4462b9dc9cp-3, -0x1.84858a711b062p-44, 0x1.af4p-1,
    0x1.5f830a1a5cp-3, 0x1.5226898ffc1bcp-44, 0x1.a98p-1, 0x1.7b00916516p-3,
    -0x1.ae75fcb067e57p-44, 0x1.a4p-1, 0x1.95a5adcf7p-3, 0x1.7f22858a0ff6fp-47, 0x1.9ecp-1,
    0x1.af6895610ep-3, -0x1.148288bf7a937p-45, 0x1.998p-1, 0x1.c97f8079d4p-3,
    0x1.3b161a8c6e6c5p-45, 0x1.948p-1, 0x1.e2a877a6b2p-3, 0x1.823817787081ap-44, 0x1.8f8p-1,
    0x1.fc218be62p-3, 0x1.4bba46f1cf6ap-44, 0x1.8acp-1, 0x1.0a504e97bbp-2, 0x1.03094e6690c44p-44,
    0x1.86p-1, 0x1.16b5ccbadp-2, -0x1.23299042d74bfp-44, 0x1.818p-1, 0x1.22981fbef8p-2,
    -0x1.a1421609580dap-44, 0x1.7dp-1, 0x1.2e9e2bce12p-2, 0x1.4300c128d1dc2p-45, 0x1.78cp-1,
    0x1.3a1ac802f3p-2, 0x1.98ecf399abd8dp-44, 0x1.744p-1, 0x1.4668bf41fp-2,
    -0x1.9af1762c5a8f7p-44, 0x1.704p-1, 0x1.5178d9ab55p-2, 0x1.5c1530fe963b3p-44, 0x1.6cp-1,
    0x1.5d5bddf596p-2, -0x1.a0b2a08a465dcp-47,
};
/*@ end */
/* clang-format on */

/*@ imk_log needs: imk_addf imk_f64 imk_logs imk_mul imk_p4 imk_p5 imk_u64 */
/* log(x) = hi + lo for x > 0, finite; returns hi. Relative error 2^-67. x = 2^k z, and z lies in
 * one of 64 intervals. The table has for each a short 1/c near the reciprocal of its middle, and
 * -log(1/c) in two parts. z/c = 1 + r is exact, |r| < 2^-7. c = 1 around z = 1. */
static inline double imk_log(double x, double *lo) {
  uint64_t u, d;
  int k = 0;
  const double *c;
  double z, zh, kd, t, tl, rh, rl, r, e, p, pl, r2;
  if (x < 0x1p-1022) {
    x *= 0x1p54;
    k = -54;
  }
  u = imk_u64(x);
  d = u - 0x3fe6a00000000000 + 0x3ff0000000000000;
  k += (int)(d >> 52) - 1023;
  c = imk_logs + 3 * (d >> 46 & 63);
  z = imk_f64((d & 0x000fffffffffffff) + 0x3fe6a00000000000);
  zh = imk_f64(imk_u64(z) & 0xffffffff00000000);
  kd = k;
  t = kd * 0x1.62e42fefa38p-1 + c[1];
  tl = kd * 0x1.ef35793c7673p-45 + c[2];
  rh = zh * c[0] - 1;
  rl = (z - zh) * c[0];
  r = imk_addf(rh, rl, &rl);
  p = imk_mul(-0.5 * r, r, &pl);
  r2 = r * r;
  tl += (pl - r * rl) + r * r2 *
                            (imk_p5(r, r2, 0x1.5555555555555p-2, -0x1.000000000006fp-2,
                                    0x1.99999999993fp-3, -0x1.55555543ad0e9p-3,
                                    imk_p4(r, r2, 0x1.2492494cdb94bp-3, -0x1.0006bdd4c1b92p-3,
                                           0x1.c71745438c171p-4, 0)));
  t = imk_addf(t, r, &e);
  tl += e + rl;
  t = imk_addf(t, p, &e);
  return imk_addf(t, tl + e, lo);
}
/*@ end */

/*@ log needs: imk_inf imk_log imk_nan */
/* error 0.501 */
static inline double im_log(double x) {
  double lo;
  if (!(x > 0 && x < imk_inf())) return x == 0 ? -imk_inf() : x < 0 ? imk_nan() : x;
  return imk_log(x, &lo);
}
/*@ end */

/*@ tanh needs: imk_abs imk_addf imk_exp imk_f64 imk_p4 imk_p5 imk_sign */
/* error 0.80. Beyond 0.55: 1 - 2 / (exp(2x) + 1), with a correction for the low part of the
 * denominator. */
static inline double im_tanh(double x) {
  double a = imk_abs(x), z, z2, hi, lo, s, d, dl, q, t;
  if (a < 0.55) {
    z = x * x;
    z2 = z * z;
    return a < 0x1p-28
               ? x
               : x + x * z *
                         (imk_p5(z, z2, -0x1.555555555554fp-2, 0x1.1111111110798p-3,
                                 -0x1.ba1ba1b97d20bp-5, 0x1.664f4859586d1p-6,
                                 imk_p5(z, z2, -0x1.226e2f1144187p-7, 0x1.d6d29b107703ap-9,
                                        -0x1.7d8fccb01e444p-10, 0x1.348373355c7ffp-11,
                                        imk_p4(z, z2, -0x1.e96d57526cdbp-13, 0x1.5d6d2d719bbc9p-14,
                                               -0x1.46fed44e2bea9p-16, 0))));
  }
  if (!(a < 20)) return x != x ? x : imk_sign(1, x);
  s = imk_f64((uint64_t)(1023 + imk_exp(2 * a, 0, &hi, &lo)) << 52);
  d = imk_addf(s * hi, 1, &dl);
  dl += s * lo;
  q = 2 / d;
  t = 1 - q;
  return imk_sign(t + (((1 - t) - q) + q * dl / d), x);
}
/*@ end */

/* clang-format off */
/*@ imk_erfs needs: */
static const double imk_erfs[144] = {
    0x1.e887bf681f218p-4, -0x1.575f3483021c3p-2, 0x1.7a3edfd850532p-2, -0x1.46a235c3b493p-3,
    -0x1.210a4bcdace4cp-5, 0x1.03a8cb5bf0e28p-4, -0x1.c6709592f8859p-7, -0x1.5f8ffbe793411p-7,
    0x1.8464d6b356144p-8, 0x1.4d252a65f5ba5p-11, -0x1.38e387a70f27bp-10, 0x1.1b443502acf73p-13,
    0x1.4733a38ee6548p-13, -0x1.7d34935bf6bf1p-15, -0x1.bc5244366946fp-17, 0x1.e7eae4a88e49cp-18,
    0x1.1f2e909de04d2p-6, -0x1.131e14fa1625dp-4, 0x1.ce1c873c11336p-4, -0x1.a9c340713be01p-4,
    0x1.9712f16b7cb74p-5, -0x1.20b9389e1bb28p-9, -0x1.89cc69c201954p-7, 0x1.9c591b7ef3a84p-8,
    -0x1.18863fbfb1bc5p-14, -0x1.3a2bbc0f8c366p-10, 0x1.b2a244452d7dep-12, 0x1.239e53aa6d612p-14,
    -0x1.58ff78995d26cp-14, 0x1.7f8c5fdb17f6fp-17, 0x1.0cb3c1de92d82p-17, -0x1.9d8e08eda2459p-19,
    0x1.7111bfdfb3cep-10, -0x1.c3e1a5f5c077cp-8, 0x1.fe21bc5a6e47cp-7, -0x1.5a454097944bap-6,
    0x1.31e28e86b668ep-6, -0x1.58be11152c27cp-7, 0x1.81438692d0b86p-9, 0x1.3f2fba61a21dep-11,
    -0x1.fe645266d4769p-11, 0x1.840939dbbc45bp-12, 0x1.900a7e54ff9b5p-18, -0x1.0840be5db7372p-14,
    0x1.7e7d92cb2a9edp-16, 0x1.04b6f16450c81p-20, -0x1.b6f245541fe47p-19, 0x1.bd967a76135eep-21,
    0x1.fc01dbb80c842p-15, -0x1.7c629a822bc9fp-12, 0x1.0dafe88b4a09cp-10, -0x1.de2db171d452ap-10,
    0x1.2612be8c53494p-9, -0x1.05dccf22e8c09p-9, 0x1.523eab96bc34fp-10, -0x1.2abeb18d7f5b9p-11,
    0x1.0b5fa66427ffep-13, 0x1.fed92e4c8b6a2p-16, -0x1.4f01e1546a4f8p-15, 0x1.05e243023a7b5p-16,
    -0x1.6380e49dc784ap-20, -0x1.b3fbe96c82c3fp-20, 0x1.b47f2695b6ad5p-21, -0x1.b6c7eb021b295p-24,
    0x1.71ce426a561cep-20, -0x1.4834877429b8cp-17, 0x1.1820d59ca5abap-15, -0x1.311dd81e181d1p-14,
    0x1.da27ce513bf9p-14, -0x1.15fde74228a32p-13, 0x1.fa478be15963dp-14, -0x1.6978b15e1c12ap-14,
    0x1.9010ee5afe4dcp-15, -0x1.45e67c8a7a232p-16, 0x1.4122b5af5a837p-18, 0x1.bf39aa50dcac1p-23,
    -0x1.c53d889323a81p-21, 0x1.bc7f62d9d0d98p-22, -0x1.6f75631518c08p-24, -0x1.957b5b93f76a4p-27,
    0x1.1a7409475f325p-26, -0x1.22430f521cbddp-23, 0x1.21b1edca732cap-21, -0x1.75695076a7332p-20,
    0x1.5c8a72a857ad9p-19, -0x1.f4907c9faffe5p-19, 0x1.1e95f179cfb74p-18, -0x1.0b4bbba9b9d84p-18,
    0x1.9ab9a1bb771d7p-19, -0x1.046d72f44aca3p-19, 0x1.0dd53963a19c9p-20, -0x1.ba83eec2ce02ap-22,
    0x1.05fde4aa831a4p-23, -0x1.2025f050faf05p-26, -0x1.ede2d4d5dfa5bp-28, 0x1.8543a9e611ae5p-28,
    0x1.c242efeaca69p-34, -0x1.071f4bbea0a7cp-30, 0x1.2ca3420b4fbe7p-28, -0x1.bf0a137545fc1p-27,
    0x1.e5b96864ed2a2p-26, -0x1.9a745190df5cfp-25, 0x1.1844e888078cbp-24, -0x1.3d1ce515db147p-24,
    0x1.2e44be57ef1a8p-24, -0x1.eaa94fa4e2e54p-25, 0x1.5505dda265842p-25, -0x1.962c3eb39290fp-26,
    0x1.9c0a8ce8ae3bbp-27, -0x1.5e7f91f087fc2p-28, 0x1.e40e94585831ep-30, -0x1.d233c9cf794f6p-32,
    0x1.751977e57b72dp-42, -0x1.e8f70e181a757p-39, 0x1.3aacfe527752ep-36, -0x1.08ebde144fde6p-34,
    0x1.47df0bb020c77p-33, -0x1.3dbc609ba72d3p-32, 0x1.f5909ee545607p-32, -0x1.4b1220c39d976p-31,
    0x1.7462611837097p-31, -0x1.69ab64541c5abp-31, 0x1.323aaee89ce4fp-31, -0x1.c6ec39ee48873p-32,
    0x1.28df66b0e469bp-32, -0x1.56825ff1d458p-33, 0x1.6f796f35d684bp-34, -0x1.4159ea6ef1322p-35,
    0x1.40880373b71d2p-51, -0x1.d1aefbcd18cd8p-48, 0x1.4d5881c3c13dfp-45, -0x1.394da68de8e5p-43,
    0x1.b2a5fa3ca93abp-42, -0x1.da4f792a4e38bp-41, 0x1.a7b7e98a6f719p-40, -0x1.3e6722dbee011p-39,
    0x1.9a6f4586ce2a4p-39, -0x1.cc65b551ce1c5p-39, 0x1.c678a341cb5e8p-39, -0x1.8dce539fb14e2p-39,
    0x1.34dbe61343ccbp-39, -0x1.b128e43bea5f8p-40, 0x1.2db96ad98d0edp-40, -0x1.531a63298f9edp-41,
};
/*@ end */
/* clang-format on */

/*@ erf needs: imk_abs imk_erfs imk_p5 imk_sign imk_t5 */
/* error 0.91. Beyond 0.8125: 1 - a polynomial for erfc around the middle of one of 9 intervals */
static inline double im_erf(double x) {
  double a = imk_abs(x), z, z2, t, t2;
  const double *c;
  int i;
  if (a < 0.8125) {
    z = x * x;
    z2 = z * z;
    return x + x * (imk_p5(z, z2, 0x1.06eba8214db69p-3, -0x1.812746b0379e7p-2, 0x1.ce2f21a042bdfp-4,
                           -0x1.b82ce31288a26p-6,
                           imk_p5(z, z2, 0x1.565bcd0e654cfp-8, -0x1.c02db3fea434ep-11,
                                  0x1.f9a326a4b8413p-14, -0x1.f4d2507c3e288p-17,
                                  imk_p5(z, z2, 0x1.b9e5ac47e607cp-20, -0x1.5f6184aa37e26p-23,
                                         0x1.fb1d6a775c17bp-27, -0x1.45912f6d1f663p-30,
                                         0x1.31960777c9827p-34))));
  }
  if (!(a < 5.9375)) return x != x ? x : imk_sign(1, x);
  i = (int)((a - 0.8125) * 0x1.bacf914c1bad0p+0);
  c = imk_erfs + 16 * i;
  t = a - (1.1015625 + 0.578125 * i);
  t2 = t * t;
  z = imk_t5(t, t2, c + 9, (c[13] + c[14] * t) + c[15] * t2);
  z = imk_t5(t, t2, c + 1, imk_t5(t, t2, c + 5, z));
  t2 = 1 - c[0];
  return imk_sign(t2 + (((1 - t2) - c[0]) - t * z), x);
}
/*@ end */

/*@ gelu_x2 needs: erf */
/* |x| 2^-52 where 1 + erf cancels */
static inline double im_gelu_x2(double x) {
  return x * (1 + im_erf(x * 0x1.6a09e667f3bcdp-1));
}
/*@ end */

/* Sine and cosine: x is reduced to y0 + y1 in [-pi/4, pi/4], accurate to about 100 bits. */

/* clang-format off */
/*@ imk_twopi needs: */
/* 2/pi in binary, after one word of zeros */
static const uint64_t imk_twopi[20] = {0x0,
    0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561,
    0xb7246e3a424dd2e0, 0x6492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484,
    0xe99c7026b45f7e41, 0x3991d639835339f4, 0x9c845f8bbdf9283b, 0x1ff897ffde05980f,
    0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d, 0x7527bac7ebe5f17b,
    0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab,
};
/*@ end */
/* clang-format on */

/*@ imk_joined needs: */
/* 64 bits of two words, from bit s < 64 on */
static inline uint64_t imk_joined(const uint64_t *t, int s) {
  return t[0] << s | t[1] >> 1 >> (63 - s);
}
/*@ end */

/*@ imk_bigpi needs: imk_addf imk_joined imk_mul imk_twopi imk_u64 imk_wide */
/* Payne-Hanek reduction for 2^10 <= |x| < inf. Only 192 bits of 2/pi matter: times the integer m of
 * x = m 2^e, the others give multiples of 4 or less than 2^-128. */
static inline int imk_bigpi(double x, double *y0, double *y1) {
  uint64_t m = imk_u64(x), w0, w1, w2, top, mid, low, hi, lo, f1, f0;
  int b = (int)(m >> 52 & 2047) - 1013, s = b & 63, q, neg;
  const uint64_t *t = imk_twopi + (b >> 6);
  double a, al, p, pl;
  w0 = imk_joined(t, s);
  w1 = imk_joined(t + 1, s);
  w2 = imk_joined(t + 2, s);
  m = (m & 0x000fffffffffffff) | 0x0010000000000000;
  mid = imk_wide(m, w2, &low);
  hi = imk_wide(m, w1, &lo);
  mid += lo;
  top = m * w0 + hi + (mid < lo);
  q = (int)(top >> 62);
  f1 = top << 2 | mid >> 62;
  f0 = mid << 2 | low >> 62;
  neg = f1 >> 63 != 0; /* the fraction is above one half: 1 - f of the next quadrant */
  if (neg) {
    q++;
    f1 = ~f1;
    f0 = ~f0;
  }
  a = (double)(int64_t)(f1 & 0xfffffffffffff800); /* below 2^63, exact */
  a = imk_addf(a, (double)(int64_t)((f1 & 0x7ff) << 52 | f0 >> 12) * 0x1p-52, &al);
  p = imk_mul(a, 0x1.921fb54442d18p0, &pl);
  pl += a * 0x1.1a62633145c07p-54 + al * 0x1.921fb54442d18p0;
  if (neg != (x < 0)) {
    p = -p;
    pl = -pl;
  }
  *y0 = imk_addf(p, pl, y1) * 0x1p-64;
  *y1 *= 0x1p-64;
  return x < 0 ? -q : q;
}
/*@ end */

/*@ imk_pio2 needs: imk_abs imk_add imk_addf imk_bigpi */
/* x = q pi/2 + y0 + y1; returns q modulo 4. Below 2^19, q times each of the first three parts of
 * pi/2 is exact (Cody-Waite). */
static inline int imk_pio2(double x, double *y0, double *y1) {
  double k, r, e, f;
  if (!(imk_abs(x) < 0x1p19)) return imk_bigpi(x, y0, y1) & 3;
  k = (x * 0x1.45f306dc9c883p-1 + 0x1.8p52) - 0x1.8p52;
  r = x - k * 0x1.921fb5448p0;
  r = imk_add(r, -k * -0x1.e973dcb4p-35, &e);
  r = imk_add(r, -k * 0x1.3198a2ep-69, &f);
  *y0 = imk_addf(r, (e + f) - k * 0x1.b839a252049c1p-104, y1);
  return (int)k & 3;
}
/*@ end */

/*@ imk_sin needs: imk_addf imk_p5 */
/* sin(y0 + y1) = result + lo, |y0| <= pi/4 */
static inline double imk_sin(double y0, double y1, double *lo) {
  double z = y0 * y0, z2 = z * z;
  double p = imk_p5(z, z2, -0x1.5555555555548p-3, 0x1.111111110f7cdp-7, -0x1.a01a019bfd858p-13,
                    0x1.71de3567724bfp-19, -0x1.ae5e5a42a60eap-26 + 0x1.5d8fba2eeca17p-33 * z);
  return imk_addf(y0, y0 * z * p + y1 * (1 - 0.5 * z), lo);
}
/*@ end */

/*@ imk_cos needs: imk_addf imk_p5 */
static inline double imk_cos(double y0, double y1, double *lo) {
  double z = y0 * y0, z2 = z * z, h = 0.5 * z, w = 1 - h;
  double p = imk_p5(z, z2, 0x1.555555555554bp-5, -0x1.6c16c16c14f93p-10, 0x1.a01a019c84687p-16,
                    -0x1.27e4f7eac8d07p-22, 0x1.1ee9d7af1ac53p-29 + -0x1.8fa4932f95929p-37 * z);
  return imk_addf(w, ((1 - w) - h) + (z2 * p - y0 * y1), lo);
}
/*@ end */

/*@ imk_wave needs: imk_cos imk_pio2 imk_sin */
/* sin(x + turn pi/2) for finite x */
static inline double imk_wave(double x, int turn) {
  double y0, y1, lo, r;
  int q = imk_pio2(x, &y0, &y1) + turn;
  r = q & 1 ? imk_cos(y0, y1, &lo) : imk_sin(y0, y1, &lo);
  return q & 2 ? -r : r;
}
/*@ end */

/*@ sin needs: imk_abs imk_inf imk_wave */
/* error 0.86 */
static inline double im_sin(double x) {
  double a = imk_abs(x);
  if (!(a < imk_inf())) return x - x;
  return a < 0x1p-27 ? x : imk_wave(x, 0);
}
/*@ end */

/*@ cos needs: imk_abs imk_inf imk_wave */
/* error 0.86 */
static inline double im_cos(double x) {
  return imk_abs(x) < imk_inf() ? imk_wave(x, 1) : x - x;
}
/*@ end */

/*@ tan needs: imk_abs imk_cos imk_inf imk_pio2 imk_sin */
/* error 1.6 */
static inline double im_tan(double x) {
  double a = imk_abs(x), y0, y1, s, sl, c, cl, t;
  int q;
  if (!(a < imk_inf())) return x - x;
  if (a < 0x1p-27) return x;
  q = imk_pio2(x, &y0, &y1);
  s = imk_sin(y0, y1, &sl);
  c = imk_cos(y0, y1, &cl);
  if (q & 1) { /* tan(y + pi/2) = -cos(y) / sin(y) */
    t = s, s = -c, c = t;
    t = sl, sl = -cl, cl = t;
  }
  t = s / c;
  return t + (sl - t * cl) / c;
}
/*@ end */

/*@ imk_asin needs: imk_p5 */
/* asin(t) = t + t p, z = t^2 <= 1/4; returns p */
static inline double imk_asin(double z) {
  double z2 = z * z;
  return z * (imk_p5(z, z2, 0x1.5555555555577p-3, 0x1.333333332e104p-4, 0x1.6db6db7214153p-5,
                     0x1.f1c71a946c348p-6,
                     imk_p5(z, z2, 0x1.6e8bdeed167a8p-6, 0x1.1c49ef903d8cbp-6, 0x1.ca1f9ec2d94a6p-7,
                            0x1.758507af8166ap-7,
                            imk_p5(z, z2, 0x1.613f2ff991fb6p-7, 0x1.e5d03b45ffc5cp-9,
                                   0x1.63a722c61b644p-6, -0x1.580bd3017c51ep-6,
                                   0x1.0b4b02f854463p-5))));
}
/*@ end */

/*@ imk_root needs: sqrt imk_mul */
/* square root of h + l = result + lo, h > 0 and l below its last place */
static inline double imk_root(double h, double l, double *lo) {
  double s = im_sqrt(h), p, pl;
  p = imk_mul(s, s, &pl);
  *lo = (((h - p) - pl) + l) / (2 * s);
  return s;
}
/*@ end */

/*@ asin needs: imk_abs imk_asin imk_nan imk_root imk_sign */
/* error 1.2. Beyond 1/2: pi/2 - 2 asin(s) with s^2 = (1 - x) / 2 */
static inline double im_asin(double x) {
  double a = imk_abs(x), z, s, sl;
  if (a < 0.5) return x + x * imk_asin(x * x);
  if (!(a < 1)) return a == 1 ? imk_sign(0x1.921fb54442d18p0, x) : imk_nan();
  z = (1 - a) * 0.5;
  s = imk_root(z, 0, &sl);
  sl = 0x1.1a62633145c07p-54 - 2 * (sl + s * imk_asin(z));
  return imk_sign(0x1.921fb54442d18p0 - (2 * s - sl), x);
}
/*@ end */

/*@ acos needs: imk_abs imk_asin imk_nan imk_root */
/* error 0.78 */
static inline double im_acos(double x) {
  double a = imk_abs(x), z, s, sl;
  if (a < 0.5) return 0x1.921fb54442d18p0 - (x - (0x1.1a62633145c07p-54 - x * imk_asin(x * x)));
  if (!(a < 1)) return x == 1 ? 0 : a == 1 ? 2 * 0x1.921fb54442d18p0 : imk_nan();
  z = (1 - a) * 0.5;
  s = imk_root(z, 0, &sl);
  sl += s * imk_asin(z);
  if (x > 0) return 2 * (s + sl);
  return 2 * (0x1.921fb54442d18p0 - (s - (0x1.1a62633145c07p-54 - sl)));
}
/*@ end */

/* clang-format off */
/*@ imk_atans needs: */
/* atan(i / 8) in two parts */
static const double imk_atans[18] = {
    0, 0, 0x1.fd5ba9aac2f6ep-4, -0x1.cd37686760c17p-59, 0x1.f5b75f92c80ddp-3,
    0x1.8ab6e3cf7afbdp-57, 0x1.6f61941e4def1p-2, -0x1.c63aae6f6e918p-56, 0x1.dac670561bb4fp-2,
    0x1.a2b7f222f65e2p-56, 0x1.1e00babdefeb4p-1, -0x1.928df287a668fp-58, 0x1.4978fa3269ee1p-1,
    0x1.2419a87f2a458p-56, 0x1.700a7c5784634p-1, -0x1.8c34d25aadef6p-56, 0x1.921fb54442d18p-1,
    0x1.1a62633145c07p-55,
};
/*@ end */
/* clang-format on */

/*@ atan needs: imk_abs imk_atans imk_p5 imk_sign */
/* error 1.6. atan(t) = atan(c) + atan((t - c) / (1 + t c)) with c = i / 8 */
static inline double im_atan(double x) {
  double a = imk_abs(x), t = a > 1 ? 1 / a : a, c, r, z, z2;
  int i;
  if (x != x) return x;
  i = (int)(8 * t + 0.5);
  c = 0.125 * i;
  r = (t - c) / (1 + t * c);
  z = r * r;
  z2 = z * z;
  r += imk_atans[2 * i + 1] +
       r * z *
           (imk_p5(z, z2, -0x1.5555555555555p-2, 0x1.9999999999813p-3, -0x1.24924923f7bcep-3,
                   0x1.c71c6e43c927ap-4, -0x1.7457ebec29e22p-4 + 0x1.3754b1edec328p-4 * z));
  if (a > 1)
    r = 0x1.921fb54442d18p0 - (imk_atans[2 * i] - (0x1.1a62633145c07p-54 - r));
  else
    r += imk_atans[2 * i];
  return imk_sign(r, x);
}
/*@ end */

/*@ sinh needs: imk_abs imk_exp imk_inf imk_p4 imk_p5 imk_scale imk_sign */
/* error 0.87 */
static inline double im_sinh(double x) {
  double a = imk_abs(x), z, z2, hi, lo;
  int k;
  if (a < 1) {
    z = x * x;
    z2 = z * z;
    return x + x * z *
                   (imk_p5(z, z2, 0x1.5555555555555p-3, 0x1.1111111111111p-7, 0x1.a01a01a019fc1p-13,
                           0x1.71de3a5573f79p-19,
                           imk_p4(z, z2, 0x1.ae6456741b99dp-26, 0x1.61246afa2948cp-33,
                                  0x1.ae756e9af168dp-41, 0x1.9a7940a8ff9f2p-49)));
  }
  if (!(a < 750)) return x * imk_inf();
  k = imk_exp(a, 0, &hi, &lo) - 1;
  if (k < 60) { /* else exp(-x) is negligible */
    hi = imk_scale(hi, k);
    lo = imk_scale(lo, k);
    return imk_sign(hi + (lo - 0.25 / hi), x);
  }
  return imk_sign(imk_scale(hi, k), x);
}
/*@ end */

/*@ cosh needs: imk_abs imk_exp imk_inf imk_scale */
/* error 0.88 */
static inline double im_cosh(double x) {
  double a = imk_abs(x), hi, lo;
  int k;
  if (!(a < 750)) return a * imk_inf();
  k = imk_exp(a, 0, &hi, &lo) - 1;
  if (k < 60) {
    hi = imk_scale(hi, k);
    lo = imk_scale(lo, k);
    return hi + (lo + 0.25 / hi);
  }
  return imk_scale(hi, k);
}
/*@ end */

/*@ imk_arc needs: imk_add imk_log imk_mul imk_root */
/* log(a + sqrt(a^2 + one)) for a >= 2^-28, one = 1 or -1, a^2 + one > 0 */
static inline double imk_arc(double a, double one) {
  double h, l, e, s, sl, w, wl;
  if (a > 0x1p28) { /* log(2a) */
    h = imk_log(a, &l);
    w = imk_add(h, 0x1.62e42fefa38p-1, &e);
    return w + (e + (l + 0x1.ef35793c7673p-45));
  }
  h = imk_mul(a, a, &l);
  h = imk_add(h, one, &e);
  s = imk_root(h, l + e, &sl);
  w = imk_add(s, a, &wl);
  h = imk_log(w, &l);
  return h + (l + (wl + sl) / w);
}
/*@ end */

/*@ asinh needs: imk_abs imk_arc imk_inf imk_sign */
/* error 0.51 */
static inline double im_asinh(double x) {
  double a = imk_abs(x);
  if (!(a >= 0x1p-28 && a < imk_inf())) return x;
  return imk_sign(imk_arc(a, 1), x);
}
/*@ end */

/*@ acosh needs: imk_arc imk_inf imk_nan */
/* error 0.51 */
static inline double im_acosh(double x) {
  if (!(x > 1 && x < imk_inf())) return x == 1 ? 0 : x < 1 ? imk_nan() : x;
  return imk_arc(x, -1);
}
/*@ end */

/*@ atanh needs: imk_abs imk_addf imk_inf imk_log imk_mul imk_nan imk_sign */
/* error 0.51. Half the logarithm of (1 + a) / (1 - a), the quotient in two parts */
static inline double im_atanh(double x) {
  double a = imk_abs(x), n, nl, d, dl, q, p, pl, h, l;
  if (a < 0x1p-28) return x;
  if (!(a < 1)) return a == 1 ? imk_sign(imk_inf(), x) : imk_nan();
  n = imk_addf(1, a, &nl);
  d = imk_addf(1, -a, &dl);
  q = n / d;
  p = imk_mul(q, d, &pl);
  nl = (((n - p) - pl) + (nl - q * dl)) / d;
  h = imk_log(q, &l);
  return imk_sign(0.5 * (h + (l + nl / q)), x);
}
/*@ end */

/*@ pow needs: imk_abs imk_exp imk_inf imk_log imk_mul imk_nan imk_scale imk_u64 */
/* error 0.76 */
static inline double im_pow(double x, double y) {
  double a = imk_abs(x), b = imk_abs(y), l, ll, p, pl, hi, lo;
  int whole = !(b < 0x1p53) || (double)(int64_t)b == b, k;
  int neg = imk_u64(x) >> 63 && b < 0x1p53 && whole && ((int64_t)b & 1);
  double inf = neg ? -imk_inf() : imk_inf(), zero = neg ? -0.0 : 0.0;
  if (x == 1 || y == 0) return 1;
  if (x != x || y != y) return x + y;
  if (b == imk_inf()) return a == 1 ? 1 : (a > 1) == (y > 0) ? inf : zero;
  if (a == 0 || a == imk_inf()) return (a > 0) == (y > 0) ? inf : zero;
  if (x < 0 && !whole) return imk_nan();
  l = imk_log(a, &ll);
  p = imk_mul(y, l, &pl);
  if (p > 710) return inf;
  if (p < -750) return zero;
  if (imk_abs(p) < 0x1p-60) return neg ? -1 : 1; /* the parts of the product may underflow */
  k = imk_exp(p, pl + y * ll, &hi, &lo);
  return imk_scale(neg ? -hi : hi, k);
}
/*@ end */

#endif
